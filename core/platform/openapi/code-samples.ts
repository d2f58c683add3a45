/** A call of an operation as code, made of the examples of its schemas: `x-codeSamples`, which many readers of OpenAPI documents show. */
import type { Json } from "#core/platform/schema/published-schema.ts";
import type { Answer, Parameter } from "./operation.ts";

/** What all samples have to know; they read it from the environment. */
export const SAMPLES_WORDS = "The examples read the address from `URL` and the token from `TOKEN`:";

export interface SampleOf {
  readonly method: string;
  /** With `{id}` for what varies. */
  readonly path: string;
  readonly isPublic: boolean;
  readonly parameters?: readonly Parameter[] | undefined;
  readonly body?: { readonly example?: unknown; readonly mediaType?: string } | undefined;
  readonly answers: Readonly<Record<number, Answer>>;
}

interface Call {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly isPublic: boolean;
  readonly mediaType: string | null;
  readonly body: unknown;
  readonly answer: "json" | "text" | "stream" | "none";
}

export interface CodeSample {
  readonly lang: string;
  readonly label: string;
  readonly source: string;
}

/** A parameter without an example stays a name in braces. */
export function codeSamples(operation: SampleOf): CodeSample[] {
  const call = callOf(operation);
  return [
    { lang: "Shell", label: "curl", source: curlOf(call) },
    { lang: "TypeScript", label: "TypeScript", source: typescriptOf(call) },
    { lang: "Python", label: "Python", source: pythonOf(call) },
  ];
}

function callOf(operation: SampleOf): Call {
  const { method, path, isPublic, parameters = [], body, answers } = operation;
  const shown = parameters.filter(({ required, inSample }) => required || inSample === true);
  const values = new Map(
    shown.map(({ name, example }) => {
      const value = example === undefined ? `{${name}}` : encodeURIComponent(String(example));
      return [name, value];
    }),
  );
  const query = shown
    .filter(({ in: place }) => place === "query")
    .map(({ name }) => `${name}=${values.get(name)}`);
  const isEmpty = body === undefined || body.example === undefined;
  return {
    method: method.toUpperCase(),
    isPublic,
    answer: answerOf(answers),
    target: path.replaceAll(/\{(\w+)\}/g, (_, name) => values.get(name) ?? "") + queryText(query),
    mediaType: isEmpty ? null : (body.mediaType ?? "application/json"),
    body: isEmpty ? undefined : body.example,
  };
}

const queryText = (pairs: readonly string[]) => (pairs.length > 0 ? `?${pairs.join("&")}` : "");

function answerOf(answers: Readonly<Record<number, Answer>>): Call["answer"] {
  const [first] = Object.values(answers);
  if (!first?.content) return "none";
  const { mediaType = "application/json" } = first.content;
  if (mediaType === "text/event-stream") return "stream";
  return mediaType.endsWith("json") ? "json" : "text";
}

const FORM = "application/x-www-form-urlencoded";
/** How a body is written. */
type Form = "json" | "form" | "text" | "none";

function formOf(mediaType: string | null): Form {
  if (mediaType === null) return "none";
  if (mediaType === FORM) return "form";
  return mediaType.endsWith("json") ? "json" : "text";
}

function curlOf({ method, target, isPublic, mediaType, body, answer }: Call): string {
  const isPlain = method === "GET" || (method === "POST" && mediaType !== null);
  const options = [
    ...(isPublic ? [] : ['-H "Authorization: Bearer $TOKEN"']),
    ...(mediaType === null ? [] : [`-H "Content-Type: ${mediaType}"`]),
    ...(mediaType === null ? [] : curlBody(mediaType, body)),
  ];
  const flags = `-sS${answer === "stream" ? "N" : ""}${isPlain ? "" : ` -X ${method}`}`;
  return [`curl ${flags} "$URL${target}"`, ...options].join(" \\\n  ");
}

function curlBody(mediaType: string, body: unknown): string[] {
  if (mediaType === FORM) {
    return Object.entries(body as Json).map(
      ([name, value]) => `--data-urlencode ${shellText(`${name}=${value}`)}`,
    );
  }
  const indent = mediaType === "application/json" ? 2 : 0;
  const text = formOf(mediaType) === "json" ? JSON.stringify(body, null, indent) : String(body);
  return [`--data-binary ${shellText(text)}`];
}

const shellText = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

function typescriptOf({ method, target, isPublic, mediaType, body, answer }: Call): string {
  const headers = [
    ...(isPublic ? [] : [`    authorization: \`Bearer \${process.env.TOKEN}\`,`]),
    ...(["json", "text"].includes(formOf(mediaType))
      ? [`    "content-type": "${mediaType}",`]
      : []),
  ];
  const literal = typescriptLiteral(body, "  ");
  const bodies = {
    json: [`  body: JSON.stringify(${literal}),`],
    form: [`  body: new URLSearchParams(${literal}),`],
    text: [`  body: ${literal},`],
    none: [],
  };
  const options = [
    ...(method === "GET" ? [] : [`  method: "${method}",`]),
    ...(headers.length > 0 ? ["  headers: {", ...headers, "  },"] : []),
    ...bodies[formOf(mediaType)],
  ];
  const given = options.length > 0 ? `, {\n${options.join("\n")}\n}` : "";
  return `const response = await fetch(\`\${process.env.URL}${target}\`${given});\n${TYPESCRIPT_END[answer]}`;
}

const TYPESCRIPT_END: Readonly<Record<Call["answer"], string>> = {
  json: "console.log(response.status, await response.json());",
  text: "console.log(response.status, await response.text());",
  none: "console.log(response.status);",
  stream:
    "for await (const chunk of response.body ?? []) console.log(new TextDecoder().decode(chunk));",
};

/** Keys need no quotes where they are names. */
function typescriptLiteral(value: unknown, indent: string): string {
  const text = JSON.stringify(value, null, 2) ?? "";
  return text.replaceAll(/^( *)"([A-Za-z_]\w*)":/gm, "$1$2:").replaceAll("\n", `\n${indent}`);
}

function pythonOf({ method, target, isPublic, mediaType, body, answer }: Call): string {
  const headers = [
    ...(isPublic ? [] : [`"Authorization": f"Bearer {os.environ['TOKEN']}"`]),
    ...(mediaType === null ? [] : [`"Content-Type": "${mediaType}"`]),
  ];
  const literal = pythonLiteral(body, "    ");
  const form = formOf(mediaType);
  const written = {
    json: [`    data=json.dumps(${literal}).encode(),`],
    form: [`    data=urllib.parse.urlencode(${literal}).encode(),`],
    text: [`    data=${literal}.encode(),`],
    none: [],
  };
  const options = [
    `    os.environ["URL"] + ${JSON.stringify(target)},`,
    ...(method === "GET" ? [] : [`    method="${method}",`]),
    ...(headers.length > 0 ? [`    headers={${headers.join(", ")}},`] : []),
    ...written[form],
  ];
  const modules = [
    ...(answer === "json" || form === "json" ? ["json"] : []),
    "os",
    ...(form === "form" ? ["urllib.parse"] : []),
    "urllib.request",
  ];
  return `${modules.map((name) => `import ${name}`).join("\n")}

request = urllib.request.Request(
${options.join("\n")}
)
with urllib.request.urlopen(request) as response:
    ${PYTHON_END[answer]}`;
}

const PYTHON_END: Readonly<Record<Call["answer"], string>> = {
  json: "print(response.status, json.load(response))",
  text: "print(response.status, response.read().decode())",
  none: "print(response.status)",
  stream: 'for line in response:\n        print(line.decode(), end="")',
};

const PYTHON_WORDS: Readonly<Record<string, string>> = {
  true: "True",
  false: "False",
  null: "None",
};

/** JSON with Python's words for true, false and null; texts are the same in both. */
function pythonLiteral(value: unknown, indent: string): string {
  const text = JSON.stringify(value, null, 4) ?? "";
  return text
    .replaceAll(/("(?:[^"\\]|\\.)*")|\b(true|false|null)\b/g, (_, kept, word) =>
      kept === undefined ? (PYTHON_WORDS[word] ?? "") : kept,
    )
    .replaceAll("\n", `\n${indent}`);
}
