/** What makes every other check fail too, in the order in which a sender meets it: named alone, not dozens of times. */
import { describe } from "#ingest/doctor/expect.ts";
import { probeEvent } from "#ingest/doctor/probes.ts";
import type { Answer, Sender } from "#ingest/doctor/sender.ts";

export interface Cause {
  readonly what: string;
  readonly remedy: string;
}

/** Null: the service is there, knows the caller and takes a message. */
export async function firstCause(sender: Sender): Promise<Cause | null> {
  try {
    const ping = await sender.send(null, { method: "GET", path: "/v1/ping" });
    return causeOfPing(sender, ping) ?? causeOfMessage(await sender.push([probeEvent()]));
  } catch (error) {
    return silent(sender.target.url, error);
  }
}

/** @param error of a request that was not answered */
export function silent(url: string, error: unknown): Cause {
  const { code = "", message } = error as NodeJS.ErrnoException;
  const what = `${url} does not answer: ${[code, message].filter(Boolean).join(" ")}`;
  const remedy = REMEDIES.find(([codes]) => codes.test(`${code} ${message}`))?.[1];
  return { what, remedy: remedy ?? "Check the address, the network and firewalls on the way." };
}

const REMEDIES: readonly (readonly [RegExp, string])[] = [
  [/ENOTFOUND|EAI_AGAIN/, "The host name is not known: check --url and the name server."],
  [/ECONNREFUSED|ConnectionRefused/, "Nothing listens there: check the host and port of --url."],
  [/CERT|SELF_SIGNED|ISSUER|certificate/i, "The certificate is not trusted: check --ca."],
  [/EPROTO|SSL|wrong version/i, "The other side does not speak TLS: check http or https in --url."],
];

function causeOfPing({ target }: Sender, answer: Answer): Cause | null {
  const code = String(answer.body?.["code"] ?? "");
  const known = BY_CODE[code];
  if (answer.status !== 200 && known) return known;
  const what = `GET /v1/ping: ${describe(answer)}`;
  if (answer.status >= 500) return { what, remedy: "The service has a problem: try again later." };
  const courier = answer.body?.["courier"];
  if (answer.status !== 200 || typeof courier !== "string") {
    return { what, remedy: "This is not the ingestion API: check --url, and proxies on the way." };
  }
  if (courier === target.courier) return null;
  return {
    what: `The token belongs to ${courier}, and --courier is ${target.courier}.`,
    remedy: "Use the token and the code that were issued together.",
  };
}

function causeOfMessage(answer: Answer): Cause | null {
  if (answer.status === 200) return null;
  const code = String(answer.body?.["code"] ?? "");
  if (code === "BAD_SIGNATURE" && String(answer.body?.["detail"]).includes("expired")) {
    return {
      what: "The service's clock and this machine's are more than 5 minutes apart.",
      remedy: "Run an NTP client.",
    };
  }
  return (
    BY_CODE[code] ?? {
      what: `POST /v1/events/validate, one valid event: ${describe(answer)}`,
      remedy: "A proxy on the way may change requests.",
    }
  );
}

const BY_CODE: Readonly<Record<string, Cause>> = {
  UNKNOWN_TOKEN: {
    what: "The token is not known to the service (401 UNKNOWN_TOKEN).",
    remedy: "Check --token: send it exactly as issued. A revoked token is unknown.",
  },
  ADDRESS_NOT_ALLOWED: {
    what: "This machine's address is not on the allowlist (403 ADDRESS_NOT_ALLOWED).",
    remedy: "Run the doctor from where your sender sends.",
  },
  CERTIFICATE_NOT_ACCEPTED: {
    what: "The client certificate is missing or not the agreed one (403 CERTIFICATE_NOT_ACCEPTED).",
    remedy: "Pass the agreed certificate: --cert and --key.",
  },
  RATE_LIMITED: {
    what: "Other requests have used up the rate (429 RATE_LIMITED).",
    remedy: "Pause your sender, or try again later.",
  },
  SIGNATURE_REQUIRED: {
    what: "Signing is mandatory for this courier (403 SIGNATURE_REQUIRED).",
    remedy: "Pass the signing secret: --secret.",
  },
  BAD_SIGNATURE: {
    what: "A message signed with --secret is refused (403 BAD_SIGNATURE).",
    remedy: "Use the secret exactly as issued: check --secret.",
  },
};
