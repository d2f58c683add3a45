/** Of the embedded ClickHouse, in its folder. */
export const SOCKET_NAME = "engine.sock";
