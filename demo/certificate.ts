/** A certificate for `localhost` from an authority of this run's own. */
import { generate } from "selfsigned";

export interface DemoCertificate {
  readonly key: string;
  readonly cert: string;
  /** Root that vouches for it, PEM. */
  readonly ca: string;
}

export async function issueDemoCertificate(): Promise<DemoCertificate> {
  const ca = await generate([{ name: "commonName", value: "Waybill demo authority" }], {
    keyType: "ec",
    algorithm: "sha256",
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", keyCertSign: true, cRLSign: true, critical: true },
    ],
  });
  const leaf = await generate([{ name: "commonName", value: "localhost" }], {
    keyType: "ec",
    algorithm: "sha256",
    ca: { key: ca.private, cert: ca.cert },
    extensions: [
      { name: "basicConstraints", cA: false },
      { name: "keyUsage", digitalSignature: true },
      { name: "extKeyUsage", serverAuth: true },
      {
        name: "subjectAltName",
        altNames: [
          { type: 2, value: "localhost" },
          { type: 7, ip: "127.0.0.1" },
        ],
      },
    ],
  });
  return { key: leaf.private, cert: leaf.cert, ca: ca.cert };
}
