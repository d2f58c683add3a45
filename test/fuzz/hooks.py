"""What schemathesis has to know of our interface descriptions, beside what every OpenAPI document says.

A refusal of a request that the schema allows is fine if the description lists it: a code of the status (`x-codes`),
or for a validation failure the rule that no schema can say (`x-rules`).
"""

import json
import os
import re

import schemathesis

# Codes of requests that are malformed: listed everywhere, and no excuse for refusing what the schema allows.
SYNTAX = {"VALIDATION_FAILED", "MALFORMED_BODY", "INVALID_ENVELOPE", "WRONG_CONTENT_TYPE", "INTERNAL_ERROR"}
# Codes of an item of a creation that no schema-valid item may get.
ITEM_SYNTAX = {"VALIDATION_ERROR", "INTERNAL_ERROR"}

# Resources that exist, by the beginning of the paths that name them.
KNOWN = json.loads(os.environ.get("FUZZ_KNOWN", "{}"))
COURIER = "GLS_ITA"
UNSENT = {"content-encoding", "x-service-signature"}


@schemathesis.serializer("application/x-ndjson")
def one_line(context, value):
    return value if isinstance(value, bytes) else json.dumps(value).encode()


@schemathesis.hook
def before_call(context, case, kwargs):
    """Makes requests reach further than the first refusal, and leaves what is wrong with them as it is."""
    for path, values in KNOWN.items():
        if case.operation.path.startswith(path):
            # Every other path names a resource that exists.
            for name, value in (case.path_parameters or {}).items():
                if isinstance(value, str) or isinstance(value, int) and value > 0:
                    if len(str(value)) % 2 == 0:
                        case.path_parameters[name] = values[hash(str(value)) % len(values)]
    # Bodies are sent uncompressed and unsigned.
    for name in [name for name in case.headers or {} if name.lower() in UNSENT]:
        del case.headers[name]
    # A message names the courier of its token: any other is refused before its events are read.
    if isinstance(case.body, dict) and isinstance(case.body.get("courier"), str) and "events" in case.body:
        case.body = {**case.body, "courier": COURIER, "schemaVersion": version(case.body.get("schemaVersion"))}


def version(value):
    return "1.0" if isinstance(value, str) and re.fullmatch(r"[0-9]{1,4}\.[0-9]{1,4}", value) else value


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """False = no failure."""
    name = type(failure).__name__
    answer = answer_of(response)
    if name == "AcceptedNegativeData":
        # Events and lines are refused one by one, shipments of an import in its job, and a file lists what is wrong in it.
        refused = answer.get("invalid", 0) > 0 or answer.get("summary", {}).get("rejected", 0) > 0
        listed = case.operation.path.endswith("/comparison") and len(answer.get("errors") or []) > 0
        return not (refused or listed or is_wrong_in_shipments(case, answer))
    if name == "AllowHeaderMismatch":
        # `catalogue/import` is also the address of a code that is named so, which PUT maps.
        return "/catalogue/" not in case.operation.path
    if name == "RejectedPositiveData":
        return not is_listed(case, response, answer)
    if name == "ServerError":
        return response.status_code == 500 or answer.get("code") not in codes_of(case, response.status_code)
    return True


def is_wrong_in_shipments(case, answer):
    """An import that was taken, and nothing around its shipments is wrong."""
    if "jobId" not in answer or not isinstance(case.body, dict):
        return False
    shipments, webhook_url = case.body.get("shipments"), case.body.get("webhookUrl")
    around_is_right = isinstance(shipments, list) and len(shipments) > 0 and isinstance(webhook_url, str | None)
    return case.operation.path.endswith("/import") and around_is_right


@schemathesis.check
def valid_elements_are_taken(ctx, response, case):
    """A 200 or 207 may still refuse single events or items: none that the schema allows, but for a listed reason."""
    answer = answer_of(response)
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    invalid = [result for result in answer.get("results") or [] if result.get("outcome") == "INVALID"]
    assert not invalid, f"an event that the schema allows is INVALID: {json.dumps(invalid[0])}"
    codes = {error["code"] for item in answer.get("items") or [] if isinstance(item, dict) for error in item.get("errors") or []}
    assert not codes & ITEM_SYNTAX, f"an item that the schema allows is refused: {codes & ITEM_SYNTAX}"


def answer_of(response):
    try:
        answer = json.loads(response.content)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def codes_of(case, status):
    described = case.operation.definition.raw.get("responses", {}).get(str(status), {})
    if "$ref" in described:
        name = described["$ref"].rsplit("/", 1)[-1]
        described = case.operation.schema.raw_schema["components"]["responses"][name]
    return described.get("x-codes", [])


def is_listed(case, response, answer):
    code = answer.get("code")
    if code == "VALIDATION_FAILED":
        rules = {(rule["path"], rule["code"]) for rule in case.operation.definition.raw.get("x-rules", [])}
        violations = {(re.sub(r"\[\d+\]", "[]", one["path"]), one["code"]) for one in answer.get("violations", [])}
        return len(violations) > 0 and violations <= rules
    if code == "MALFORMED_BODY":
        # No schema can forbid a key at every depth of members that it does not name.
        return "__proto__" in answer.get("message", answer.get("detail", ""))
    return code in codes_of(case, response.status_code) and code not in SYNTAX
