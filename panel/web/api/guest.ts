/** The shell says when it was asked for without a session: then nobody has to ask the API who is there, and be refused. */
const MARK = 'meta[name="waybill-visitor"][content="guest"]';

export function isGuest(): boolean {
  return document.querySelector(MARK) !== null;
}

/** After any change that was admitted: it may have been a log-in. */
export function forgetGuest(): void {
  document.querySelector(MARK)?.remove();
}
