declare module "*.lua" {
  const source: string;
  export default source;
}

declare module "*.sql" {
  const source: string;
  export default source;
}

declare module "*.sh" {
  const source: string;
  export default source;
}
