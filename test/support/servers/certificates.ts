/** Certificates of an authority of the tests' own, as PEM texts. */
import { generate } from "selfsigned";

export interface Pem {
  readonly cert: string;
  readonly key: string;
}

export interface TestAuthority {
  readonly ca: string;
  readonly server: Pem;
  /** A client certificate of this organisation and common name. */
  readonly issueClient: (organisation: string, commonName: string) => Promise<Pem>;
}

const EC = { keyType: "ec", algorithm: "sha256" } as const;

export async function createTestAuthority(): Promise<TestAuthority> {
  const ca = await generate([{ name: "commonName", value: "Test authority" }], {
    ...EC,
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", keyCertSign: true, cRLSign: true, critical: true },
    ],
  });
  const signer = { ...EC, ca: { key: ca.private, cert: ca.cert } };
  const leaf = { name: "basicConstraints", cA: false } as const;
  const server = await generate([{ name: "commonName", value: "localhost" }], {
    ...signer,
    extensions: [leaf, { name: "subjectAltName", altNames: [{ type: 7, ip: "127.0.0.1" }] }],
  });
  return {
    ca: ca.cert,
    server: { cert: server.cert, key: server.private },
    async issueClient(organisation, commonName) {
      const subject = [
        { name: "countryName", value: "IT" },
        { name: "organizationName", value: organisation },
        { name: "commonName", value: commonName },
      ];
      const client = await generate(subject, { ...signer, extensions: [leaf] });
      return { cert: client.cert, key: client.private };
    },
  };
}
