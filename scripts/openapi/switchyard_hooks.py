"""What a JSON Schema cannot say about requests. scripts/openapi.sh has schemathesis load this module.

Each rule changes only requests that the description allows, so that the server has to accept them.
"""

import itertools
import re

import schemathesis
from hypothesis import strategies

EXPRESSIONS = [
    "CREATED",
    "'text'",
    "state",
    "payload",
    "j.id",
    "modified",
    "NULL",
    "json_extract(state, '$[0]')",
    "json_extract(payload, '$.a.b') || ':' || json_array_length(events)",
    "coalesce(json_extract(payload, '$.queue'), 'default')",
    "(id = 1 OR id IN (2, 3)) AND NOT modified < 5",
    "strftime('%s', 'now') - 60",
]
schemathesis.openapi.format("switchyard-expression", strategies.sampled_from(EXPRESSIONS))

SPANS = strategies.builds("{}{}".format, strategies.integers(1, 520), strategies.sampled_from("mhdw"))
schemathesis.openapi.format("switchyard-expiry", strategies.sampled_from(["1s", "3650d"]) | SPANS)

CRONS = ["*/5 * * * *", "0 9 * * MON-FRI", "30 18 L * *", "0 0 29 2 *", "@daily"]
schemathesis.openapi.format("switchyard-cron", strategies.sampled_from(CRONS))
schemathesis.openapi.format("switchyard-timezone", strategies.sampled_from(["", "UTC", "Europe/Berlin"]))

NAMESPACE = re.compile(r"[A-Za-z0-9_-]{1,255}")
TOKEN = re.compile(r"[!-9;-~]{20,255}")

numbers = itertools.count()


def number(value):
    """The value of a parameter of lmstfy if it is a valid number."""
    is_valid = re.fullmatch("[0-9]+", str(value), re.ASCII) and int(value) <= 4_294_967_295
    return int(value) if is_valid else None


def wait_less(fields):
    """A claim of qless ends within the time that a request may take."""
    wait = fields.get("wait")
    if isinstance(wait, bool) or not isinstance(wait, (int, float, str)):
        return
    try:
        is_long = 0.05 < float(wait) <= 60
    except ValueError:
        return
    if is_long:
        fields["wait"] = "0.05" if isinstance(wait, str) else 0.05


def one_schedule(fields, is_new):
    """A recurring job has an interval, or a cron expression that can have a time zone."""
    interval, cron, zone = (fields.get(name) for name in ("interval", "cron", "timezone"))
    if isinstance(interval, (int, float)) and isinstance(cron, str):
        del fields["cron"]
    if isinstance(zone, str) and not isinstance(fields.get("cron"), str):
        del fields["timezone"]
    if is_new and "interval" not in fields and cron is None:
        fields["interval"] = 60


@schemathesis.hook
def before_call(context, case, kwargs):
    path, query = case.operation.path, case.query or {}
    if path.startswith(("/api/{namespace}", "/{namespace}")):
        # The namespace of the token.
        namespace = (case.path_parameters or {}).get("namespace")
        if isinstance(namespace, str) and NAMESPACE.fullmatch(namespace):
            case.path_parameters["namespace"] = "test"
        # A delay is at most the time to live.
        delay, ttl = number(query.get("delay", 0)), number(query.get("ttl", 86_400))
        if delay is not None and ttl and delay > ttl:
            query["delay"] = ttl
        # A request does not wait for a job.
        if number(query.get("timeout")):
            query["timeout"] = 0
    if path.startswith("/get"):
        wait_less(query)
        data = case.body.get("data") if isinstance(case.body, dict) else None
        if isinstance(data, dict):
            wait_less(data)
    item = case.body.get("data") if isinstance(case.body, dict) else None
    if path.startswith("/complete") and isinstance(item, dict) and item.get("next") is None:
        # Only a job that enters another queue can have these.
        item.pop("delay", None)
        item.pop("depends", None)
    if path in ("/recur/{queue}", "/recurring/{id}"):
        for fields in item if isinstance(item, list) else [item]:
            if isinstance(fields, dict):
                one_schedule(fields, path == "/recur/{queue}")
    if path == "/token/{namespace}" and isinstance(case.body, dict):
        # A token is new.
        token = case.body.get("token")
        if isinstance(token, str) and TOKEN.fullmatch(token):
            case.body["token"] = "%010d%s" % (next(numbers), token[10:])
