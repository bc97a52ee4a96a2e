#!/usr/bin/env python3
"""Generates the clients of qless over HTTP in clients/python and clients/typescript from the OpenAPI description.

Run it after a change of src/http/openapi/qless.json; a test compares its output with the files.
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DESCRIPTION = json.loads((ROOT / "src/http/openapi/qless.json").read_text())

# The method of each operation.
NAMES = {
    "postAddQueue": "put", "postRequeueQueue": "requeue", "getGetQueue": "claim", "postGet": "claim_from",
    "getGetQueueCount": "claim_many", "getPeekQueueCount": "peek", "postHeartbeatQueue": "heartbeat",
    "postCompleteQueue": "complete", "postFailQueue": "fail", "postRetryQueue": "retry", "postCancel": "cancel",
    "postPriority": "prioritize", "postDepends": "depend", "postTag": "tag", "postUntag": "untag", "getTagTag": "tagged",
    "getTags": "tags", "postTrack": "track", "postUntrack": "untrack", "getTracked": "tracked", "postTimeout": "time_out",
    "postLog": "log", "getJobId": "job", "getJobs": "jobs", "getJobsComplete": "complete_jobs",
    "getJobsStateQueue": "jobs_by_state", "getQueues": "queues", "getQueueQueue": "queue", "deleteQueueQueue": "forget",
    "postPauseQueue": "pause", "postUnpauseQueue": "resume", "getStatsQueue": "stats", "getStatsQueueDate": "stats_of",
    "getWorkers": "workers", "getWorkerWorker": "worker_jobs", "deleteWorkerWorker": "forget_worker", "getFailed": "failures",
    "getFailedGroup": "failed", "postUnfailQueue": "unfail", "getConfig": "options", "getConfigOption": "option",
    "putConfigOption": "set_option", "deleteConfigOption": "unset_option", "postRecurQueue": "recur",
    "getRecurringId": "recurring", "postRecurringId": "change_recurring", "deleteRecurringId": "unrecur",
    "getEvents": "events",
}

# A count of 1 gives one job or null instead of a list.
LISTS = ("claim_many", "peek")

# The same as another operation, or for operators only.
LEFT_OUT = {
    "postGetQueue", "postGetQueueCount", "getGet", "getPeekQueue", "postHeartbeat", "postFail", "getCheck", "postCheck",
    "postFlush",
}


def camel(name):
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def pascal(name):
    return "".join(word.title() for word in name.split("_"))


class Python:
    words = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None", "object": "dict[str, Any]"}
    anything = "Any"

    def literal(self, values):
        return "Literal[%s]" % ", ".join(repr(value) for value in values)

    def union(self, types):
        return " | ".join(dict.fromkeys(types))

    def array(self, item):
        return "list[%s]" % item

    def structure(self, name, fields):
        lines = ['%s = TypedDict("%s", {' % (name, name)]
        for key, (kind, required, _) in fields.items():
            lines.append("    %s: %s," % (json.dumps(key), kind if required else "NotRequired[%s]" % kind))
        return "\n".join(lines + ["})"])


class TypeScript:
    words = {
        "string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null",
        "object": "Record<string, unknown>",
    }
    anything = "unknown"

    def literal(self, values):
        return " | ".join(json.dumps(value) for value in values)

    def union(self, types):
        return " | ".join(dict.fromkeys(types))

    def array(self, item):
        return "Array<%s>" % item

    def structure(self, name, fields):
        lines = ["export interface %s {" % name]
        for key, (kind, required, about) in fields.items():
            if about:
                lines.append("  /** %s */" % about)
            lines.append("  %s%s: %s;" % (key, "" if required else "?", kind))
        return "\n".join(lines + ["}"])


class Types:
    """Translates schemas, and collects the named ones."""

    def __init__(self, language):
        self.language, self.named = language, {}

    def of(self, schema, name):
        language = self.language
        if "$ref" in schema:
            name = schema["$ref"].rsplit("/", 1)[1]
            referred = DESCRIPTION["components"]["schemas"][name]
            if name in self.named:
                return name
            return self.of(referred, name)
        if "anyOf" in schema:
            return language.union(self.of(one, name) for one in schema["anyOf"])
        if "const" in schema or "enum" in schema:
            return language.literal(schema.get("enum", [schema.get("const")]))
        kind = schema.get("type")
        if kind == "array":
            item = self.of(schema.get("items", {}), name)
            return language.array(item)
        if kind == "object" and schema.get("properties"):
            if name not in self.named:
                required = schema.get("required", [])
                fields = {
                    key: (self.of(one, name + pascal(key)), key in required, one.get("description"))
                    for key, one in schema["properties"].items()
                }
                self.named[name] = language.structure(name, fields)
            return name
        return language.words.get(kind, language.anything)


class Operation:
    def __init__(self, method, path, definition, shared, types):
        self.method, self.path = method.upper(), path
        self.name = NAMES[definition["operationId"]]
        # The clients do not receive streams.
        self.summary = "Read events" if self.name == "events" else definition["summary"]
        parameters = shared + definition.get("parameters", [])
        kind = lambda it: types.of(it["schema"], pascal(self.name) + pascal(it["name"]))
        self.segments = [(it["name"], kind(it)) for it in parameters if it["in"] == "path"]
        self.query = [(it["name"], kind(it)) for it in parameters if it["in"] == "query" and it["name"] != "host"]
        self.query_host = any(it["name"] == "host" for it in parameters)
        result = definition["responses"]["200"]["content"]["application/json"]["schema"]["properties"]["results"]
        body = definition.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
        self.item, self.is_batch, self.has_body = None, False, body is not None
        if body:
            data = body["properties"]["data"]
            array = next((one for one in data.get("anyOf", []) if one.get("type") == "array"), None)
            self.is_batch = array is not None
            single = [one for one in data["anyOf"] if one is not array] if array else [data]
            self.item = types.of({"anyOf": single} if len(single) > 1 else single[0], pascal(self.name) + "Item")
        self.result = self.one_result(result, types)

    def one_result(self, result, types):
        """The result of one item; of a claim a job or null."""
        name = pascal(self.name) + "Result"
        any_of = result.get("anyOf", [])
        if self.is_batch and self.name != "cancel":
            any_of = [one for one in any_of if one.get("type") != "array"] or [any_of[0]] if any_of else []
            return types.of({"anyOf": any_of} if any_of else result, name)
        if self.name in ("claim", "claim_many", "claim_from", "peek"):
            job = types.of({"$ref": "#/components/schemas/Job"}, name)
            if self.name == "claim":
                return types.language.union([job, types.language.words["null"]])
            if self.name == "claim_from":
                return types.of(result, name)
            return types.language.array(job)
        return types.of(result, name)


def operations(types):
    for path, item in DESCRIPTION["paths"].items():
        for method, definition in item.items():
            if method == "parameters" or definition["operationId"] in LEFT_OUT:
                continue
            yield Operation(method, path, definition, item.get("parameters", []), types)


PYTHON = '''"""A typed client of qless over HTTP. Written by clients/generate.py; do not edit.

    client = Client("http://127.0.0.1:3000", worker="worker-1")
    client.put("mail", {"meta": {"to": "ada@example.com"}})
    while job := client.claim("mail", wait=10):
        client.complete("mail", {"id": job["id"], "meta": job["meta"]})
"""

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from typing import Any, Literal, NotRequired, TypedDict, overload


class QlessError(Exception):
    """The server refused a request, or one item of it. `code` is, for example, `not_running`; `details` is the whole error."""

    def __init__(self, status: int, details: dict[str, Any]):
        super().__init__(details.get("error") or "status %%d" %% status)
        self.status, self.details = status, details
        self.code: str | None = details.get("code")


%(types)s


def _list(results: Any) -> Any:
    return results if isinstance(results, list) else [results] if results else []


class Client:
    """A client of one server. Methods raise `QlessError`, and `OSError` if the server cannot be reached."""

    def __init__(
        self, server: str = "http://127.0.0.1:3000", *, worker: str | None = None, token: str | None = None,
        timeout: float = 30,
    ):
        self.server, self.worker, self.token, self.timeout = server.rstrip("/"), worker, token, timeout

    def _call(
        self, method: str, segments: Sequence[str], query: dict[str, Any] | None = None, body: dict[str, Any] | None = None,
        wait: float = 0,
    ) -> Any:
        url = self.server + "/" + "/".join(urllib.parse.quote(str(it), safe="") for it in segments)
        pairs = {name: value for name, value in (query or {}).items() if value is not None}
        if pairs:
            text = {name: json.dumps(value) if isinstance(value, bool) else value for name, value in pairs.items()}
            url += "?" + urllib.parse.urlencode(text, doseq=True)
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
        if self.token:
            request.add_header("Authorization", "Bearer " + self.token)
        try:
            with urllib.request.urlopen(request, timeout=self.timeout + wait) as response:
                answer = json.load(response)
        except urllib.error.HTTPError as error:
            try:
                details = json.load(error)
            except ValueError:
                details = {}
            raise QlessError(error.code, details if isinstance(details, dict) else {}) from None
        results, errors = answer["results"], answer.get("errors")
        if isinstance(results, list) and errors:
            # Refused items have the result false, except in `complete`, which leaves them out.
            done = iter(one for one in results if one is not False)
            return [QlessError(200, error) if error else next(done) for error in errors]
        return results

    def _body(self, data: Any) -> dict[str, Any]:
        return {"data": data} if self.worker is None else {"data": data, "host": self.worker}

%(methods)s
'''


def python():
    types = Types(Python())
    methods = []
    for it in operations(types):
        head = ["self"] + ["%s: %s" % pair for pair in it.segments]
        named = ["%s: %s | None = None" % pair for pair in it.query if pair[0] != "id"]
        if it.name == "jobs":
            head.append("ids: Sequence[str]")
        doc = '        """%s."""' % it.summary
        segments = ", ".join(name.strip("{}") if name.startswith("{") else '"%s"' % name for name in it.path.strip("/").split("/"))
        segments = "[%s]" % segments.replace("count", "str(count)")
        query = "".join(', "%s": %s' % (name, "ids" if name == "id" else name) for name, _ in it.query)
        query = "{%s}" % ((', "host": self.worker' if it.query_host else "") + query).lstrip(", ")
        wait = ", wait=wait or 0" if any(name == "wait" for name, _ in it.query) else ""
        star = ["*"] if named else []
        if it.is_batch:
            for item, result in ((it.item, it.result), ("list[%s]" % it.item, "list[%s | QlessError]" % it.result)):
                if it.name == "cancel":
                    item, result = {it.item: ("str", "str")}.get(item, ("list[str]", "list[str]"))
                methods.append("    @overload\n    def %s(%s) -> %s: ..." % (it.name, ", ".join(head + ["data: " + item]), result))
            methods.append("    def %s(%s) -> Any:\n%s\n        return self._call(\"%s\", %s, body=self._body(data))" % (
                it.name, ", ".join(head + ["data: Any"]), doc, it.method, segments))
            continue
        if it.has_body:
            head.append("data: " + it.item)
            call = 'self._call("%s", %s, body=self._body(data))' % (it.method, segments)
            if it.name == "claim_from":
                call = call[:-1] + ', wait=data.get("wait", 0))'
        else:
            call = 'self._call("%s", %s, %s%s)' % (it.method, segments, query, wait)
        if it.name in LISTS:
            call = "_list(%s)" % call
        methods.append("    def %s(%s) -> %s:\n%s\n        return %s" % (it.name, ", ".join(head + star + named), it.result, doc, call))
    return PYTHON % {"types": "\n\n".join(types.named.values()), "methods": "\n\n".join(methods)}


SCRIPT = """// A client of qless over HTTP. Written by clients/generate.py; do not edit. index.d.ts has the types.

/** The server refused a request, or one item of it. */
export class QlessError extends Error {
  constructor(status, details) {
    super(details.error ?? `status ${status}`);
    this.name = "QlessError";
    this.status = status;
    this.code = details.code;
    this.details = details;
  }
}

const asList = (results) => (Array.isArray(results) ? results : results ? [results] : []);

export class Client {
  constructor(server = "http://127.0.0.1:3000", { worker, token, timeoutMs = 30_000 } = {}) {
    this.server = server.replace(/\\/+$/, "");
    this.worker = worker;
    this.token = token;
    this.timeoutMs = timeoutMs;
  }

  async call(method, segments, query = {}, data = undefined, waitS = 0) {
    const url = new URL(`${this.server}/${segments.map((it) => encodeURIComponent(it)).join("/")}`);
    for (const [name, value] of Object.entries(query)) {
      for (const one of Array.isArray(value) ? value : [value]) {
        if (one !== undefined && one !== null) url.searchParams.append(name, String(one));
      }
    }
    const headers = { "Content-Type": "application/json" };
    if (this.token) headers.Authorization = `Bearer ${this.token}`;
    const body = data === undefined ? undefined : JSON.stringify({ data, host: this.worker });
    const signal = AbortSignal.timeout(this.timeoutMs + 1000 * waitS);
    const response = await fetch(url, { method, headers, body, signal });
    const answer = await response.json().catch(() => ({}));
    if (!response.ok) throw new QlessError(response.status, answer);
    const { results, errors } = answer;
    if (!Array.isArray(results) || !errors) return results;
    // Refused items have the result false, except in `complete`, which leaves them out.
    const done = results.filter((one) => one !== false).values();
    return errors.map((error) => (error ? new QlessError(200, error) : done.next().value));
  }

%(methods)s
}
"""

DECLARATIONS = """// The types of the client of qless over HTTP. Written by clients/generate.py; do not edit.

/** The server refused a request, or one item of it. */
export class QlessError extends Error {
  readonly status: number;
  /** For example `not_running`. */
  readonly code?: string;
  readonly details: Record<string, unknown>;
}

%(types)s

export interface Options {
  /** The name under which jobs are claimed. */
  worker?: string;
  token?: string;
  /** The time for a request, without `wait`. */
  timeoutMs?: number;
}

/** A client of one server. Methods reject with `QlessError`, or with the error of `fetch`. */
export class Client {
  constructor(server?: string, options?: Options);

%(methods)s
}
"""


def typescript():
    types = Types(TypeScript())
    methods, declared = [], []
    for it in operations(types):
        name = camel(it.name)
        head, typed = [one for one, _ in it.segments], ["%s: %s" % pair for pair in it.segments]
        if it.name == "jobs":
            head, typed = ["ids"], ["ids: string[]"]
        named = [pair for pair in it.query if pair[0] != "id"]
        segments = "[%s]" % ", ".join(part.strip("{}") if part.startswith("{") else '"%s"' % part for part in it.path.strip("/").split("/"))
        query = ["host: this.worker"] if it.query_host else []
        query += ["id: ids"] if it.name == "jobs" else []
        query += ["...query"] if named else []
        doc = "  /** %s. */\n" % it.summary
        if it.has_body:
            wait = ", data.wait ?? 0" if it.name == "claim_from" else ""
            call = '"%s", %s, {}, data%s' % (it.method, segments, wait)
            head.append("data")
        else:
            wait = ", undefined, query.wait ?? 0" if any(one == "wait" for one, _ in named) else ""
            call = '"%s", %s, { %s }%s' % (it.method, segments, ", ".join(query), wait)
        if named:
            head.append("query = {}")
            typed.append("query?: { %s }" % "; ".join("%s?: %s" % pair for pair in named))
        then = ".then(asList)" if it.name in LISTS else ""
        methods.append("  %s(%s) {\n    return this.call(%s)%s;\n  }" % (name, ", ".join(head), call.replace("{  }", "{}"), then))
        if not it.is_batch:
            data = ["data: " + it.item] if it.has_body else []
            declared.append("%s  %s(%s): Promise<%s>;" % (doc, name, ", ".join(typed + data), it.result))
            continue
        one, many = (it.item, it.result), ("Array<%s>" % it.item, "Array<%s | QlessError>" % it.result)
        if it.name == "cancel":
            one, many = ("string", "string"), ("string[]", "string[]")
        for item, result in (one, many):
            declared.append("%s  %s(%s): Promise<%s>;" % (doc, name, ", ".join(typed + ["data: " + item]), result))
    return (
        SCRIPT % {"methods": "\n\n".join(methods)},
        DECLARATIONS % {"types": "\n\n".join(types.named.values()), "methods": "\n\n".join(declared)},
    )


def main(folder):
    script, declarations = typescript()
    for path, text in (
        ("python/switchyard_qless.py", python()),
        ("typescript/index.js", script),
        ("typescript/index.d.ts", declarations),
    ):
        target = Path(folder) / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(re.sub(r"[ \t]+\n", "\n", text))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ROOT / "clients")
