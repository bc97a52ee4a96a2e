"""A typed client of qless over HTTP. Written by clients/generate.py; do not edit.

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
        super().__init__(details.get("error") or "status %d" % status)
        self.status, self.details = status, details
        self.code: str | None = details.get("code")


JobFailure = TypedDict("JobFailure", {
    "group": NotRequired[str],
    "message": NotRequired[str],
    "when": NotRequired[int],
    "worker": NotRequired[str | None],
})

JobHistory = TypedDict("JobHistory", {
    "what": NotRequired[str],
    "when": NotRequired[int],
})

Job = TypedDict("Job", {
    "id": str,
    "queue": str | None,
    "meta": Any,
    "klass": NotRequired[str | None],
    "state": Literal['waiting', 'scheduled', 'depends', 'running', 'stalled', 'failed', 'complete'],
    "worker": NotRequired[str | None],
    "expires": NotRequired[float | None],
    "priority": NotRequired[float],
    "retries": NotRequired[int | None],
    "remaining": NotRequired[int | None],
    "tags": NotRequired[list[str]],
    "tracked": NotRequired[bool],
    "dependencies": NotRequired[list[str]],
    "dependents": NotRequired[list[str]],
    "failure": NotRequired[JobFailure | None],
    "history": NotRequired[list[JobHistory]],
    "spawned_from": NotRequired[str | None],
    "heartbeat": NotRequired[float],
    "cutoff": NotRequired[float],
})

ClaimFromItem = TypedDict("ClaimFromItem", {
    "queues": list[str],
    "count": NotRequired[int | None],
    "order": NotRequired[Literal['ordered', 'round-robin', None]],
    "wait": NotRequired[float | None],
})

PutItem = TypedDict("PutItem", {
    "meta": Any,
    "id": NotRequired[str | None],
    "klass": NotRequired[str | None],
    "delay": NotRequired[float | None],
    "priority": NotRequired[float | None],
    "tags": NotRequired[list[str] | None],
    "retries": NotRequired[int | None],
    "depends": NotRequired[list[str] | None],
})

RequeueItem = TypedDict("RequeueItem", {
    "meta": Any,
    "id": str,
    "klass": NotRequired[str | None],
    "delay": NotRequired[float | None],
    "priority": NotRequired[float | None],
    "tags": NotRequired[list[str] | None],
    "retries": NotRequired[int | None],
    "depends": NotRequired[list[str] | None],
})

HeartbeatItem = TypedDict("HeartbeatItem", {
    "id": str,
    "meta": NotRequired[Any],
})

CompleteItem = TypedDict("CompleteItem", {
    "id": str,
    "meta": Any,
    "next": NotRequired[str | None],
    "delay": NotRequired[float | None],
    "depends": NotRequired[list[str] | None],
})

FailItem = TypedDict("FailItem", {
    "id": str,
    "group": str,
    "message": str,
    "meta": NotRequired[Any],
})

RetryItem = TypedDict("RetryItem", {
    "id": str,
    "delay": NotRequired[float | None],
    "group": NotRequired[str | None],
    "message": NotRequired[str | None],
})

CancelItem = TypedDict("CancelItem", {
    "id": str,
})

PrioritizeItem = TypedDict("PrioritizeItem", {
    "id": str,
    "priority": float,
})

DependsOn = TypedDict("DependsOn", {
    "id": str,
    "on": list[str],
})

DependsOff = TypedDict("DependsOff", {
    "id": str,
    "off": list[str] | Literal['all'],
})

TagItem = TypedDict("TagItem", {
    "id": str,
    "tags": list[str],
})

UntagItem = TypedDict("UntagItem", {
    "id": str,
    "tags": list[str],
})

TaggedResult = TypedDict("TaggedResult", {
    "total": int,
    "jobs": list[str],
})

TrackItem = TypedDict("TrackItem", {
    "id": str,
    "tags": NotRequired[list[str] | None],
})

UntrackItem = TypedDict("UntrackItem", {
    "id": str,
})

TrackedResult = TypedDict("TrackedResult", {
    "jobs": list[Job],
    "expired": list[str],
})

TimeOutItem = TypedDict("TimeOutItem", {
    "id": str,
})

LogItem = TypedDict("LogItem", {
    "id": str,
    "message": str,
    "data": NotRequired[dict[str, Any] | None],
})

Queue = TypedDict("Queue", {
    "name": str,
    "waiting": NotRequired[int],
    "running": NotRequired[int],
    "stalled": NotRequired[int],
    "scheduled": NotRequired[int],
    "depends": NotRequired[int],
    "recurring": NotRequired[int],
    "paused": NotRequired[bool],
})

WorkersResult = TypedDict("WorkersResult", {
    "name": str,
    "jobs": int,
    "stalled": int,
})

WorkerJobsResult = TypedDict("WorkerJobsResult", {
    "jobs": list[str],
    "stalled": list[str],
})

FailedResult = TypedDict("FailedResult", {
    "total": int,
    "jobs": list[Job],
})

UnfailItem = TypedDict("UnfailItem", {
    "group": str,
    "count": NotRequired[int | None],
})

RecurItem = TypedDict("RecurItem", {
    "meta": Any,
    "interval": NotRequired[float | None],
    "cron": NotRequired[str | None],
    "timezone": NotRequired[str | None],
    "id": NotRequired[str | None],
    "klass": NotRequired[str | None],
    "offset": NotRequired[float | None],
    "priority": NotRequired[float | None],
    "tags": NotRequired[list[str] | None],
    "retries": NotRequired[int | None],
    "backlog": NotRequired[int | None],
})

ChangeRecurringItem = TypedDict("ChangeRecurringItem", {
    "priority": NotRequired[float | None],
    "interval": NotRequired[float | None],
    "cron": NotRequired[str | None],
    "timezone": NotRequired[str | None],
    "retries": NotRequired[int | None],
    "backlog": NotRequired[int | None],
    "meta": NotRequired[Any],
    "klass": NotRequired[str | None],
    "queue": NotRequired[str | None],
    "tag": NotRequired[list[str] | None],
    "untag": NotRequired[list[str] | None],
})

EventsResult = TypedDict("EventsResult", {
    "events": list[dict[str, Any]],
    "last": int,
})


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

    def claim(self, queue: str, *, wait: float | None = None) -> Job | None:
        """Claim a job."""
        return self._call("GET", ["get", queue], {"host": self.worker, "wait": wait}, wait=wait or 0)

    def claim_many(self, queue: str, count: int, *, wait: float | None = None) -> list[Job]:
        """Claim several jobs."""
        return _list(self._call("GET", ["get", queue, str(count)], {"host": self.worker, "wait": wait}, wait=wait or 0))

    def claim_from(self, data: ClaimFromItem) -> Job | None | list[Job]:
        """Claim jobs from several queues."""
        return self._call("POST", ["get"], body=self._body(data), wait=data.get("wait", 0))

    def peek(self, queue: str, count: int) -> list[Job]:
        """Read the next jobs without a lease."""
        return _list(self._call("GET", ["peek", queue, str(count)], {"host": self.worker}))

    @overload
    def put(self, queue: str, data: PutItem) -> str: ...

    @overload
    def put(self, queue: str, data: list[PutItem]) -> list[str | QlessError]: ...

    def put(self, queue: str, data: Any) -> Any:
        """Put jobs."""
        return self._call("POST", ["add", queue], body=self._body(data))

    @overload
    def requeue(self, queue: str, data: RequeueItem) -> str: ...

    @overload
    def requeue(self, queue: str, data: list[RequeueItem]) -> list[str | QlessError]: ...

    def requeue(self, queue: str, data: Any) -> Any:
        """Put existing jobs again."""
        return self._call("POST", ["requeue", queue], body=self._body(data))

    @overload
    def heartbeat(self, queue: str, data: str | HeartbeatItem) -> float: ...

    @overload
    def heartbeat(self, queue: str, data: list[str | HeartbeatItem]) -> list[float | QlessError]: ...

    def heartbeat(self, queue: str, data: Any) -> Any:
        """Extend leases."""
        return self._call("POST", ["heartbeat", queue], body=self._body(data))

    @overload
    def complete(self, queue: str, data: CompleteItem) -> str: ...

    @overload
    def complete(self, queue: str, data: list[CompleteItem]) -> list[str | QlessError]: ...

    def complete(self, queue: str, data: Any) -> Any:
        """Complete jobs."""
        return self._call("POST", ["complete", queue], body=self._body(data))

    @overload
    def fail(self, queue: str, data: FailItem) -> str: ...

    @overload
    def fail(self, queue: str, data: list[FailItem]) -> list[str | QlessError]: ...

    def fail(self, queue: str, data: Any) -> Any:
        """Fail jobs."""
        return self._call("POST", ["fail", queue], body=self._body(data))

    @overload
    def retry(self, queue: str, data: str | RetryItem) -> int: ...

    @overload
    def retry(self, queue: str, data: list[str | RetryItem]) -> list[int | QlessError]: ...

    def retry(self, queue: str, data: Any) -> Any:
        """Retry jobs."""
        return self._call("POST", ["retry", queue], body=self._body(data))

    @overload
    def cancel(self, data: str) -> str: ...

    @overload
    def cancel(self, data: list[str]) -> list[str]: ...

    def cancel(self, data: Any) -> Any:
        """Cancel jobs, all or none."""
        return self._call("POST", ["cancel"], body=self._body(data))

    @overload
    def prioritize(self, data: PrioritizeItem) -> float: ...

    @overload
    def prioritize(self, data: list[PrioritizeItem]) -> list[float | QlessError]: ...

    def prioritize(self, data: Any) -> Any:
        """Change priorities."""
        return self._call("POST", ["priority"], body=self._body(data))

    @overload
    def depend(self, data: DependsOn | DependsOff) -> Literal[True]: ...

    @overload
    def depend(self, data: list[DependsOn | DependsOff]) -> list[Literal[True] | QlessError]: ...

    def depend(self, data: Any) -> Any:
        """Add or remove dependencies."""
        return self._call("POST", ["depends"], body=self._body(data))

    @overload
    def tag(self, data: TagItem) -> list[str]: ...

    @overload
    def tag(self, data: list[TagItem]) -> list[list[str] | QlessError]: ...

    def tag(self, data: Any) -> Any:
        """Add tags."""
        return self._call("POST", ["tag"], body=self._body(data))

    @overload
    def untag(self, data: UntagItem) -> list[str]: ...

    @overload
    def untag(self, data: list[UntagItem]) -> list[list[str] | QlessError]: ...

    def untag(self, data: Any) -> Any:
        """Remove tags."""
        return self._call("POST", ["untag"], body=self._body(data))

    def tagged(self, tag: str, *, offset: int | None = None, limit: int | None = None) -> TaggedResult:
        """List the jobs with a tag."""
        return self._call("GET", ["tag", tag], {"offset": offset, "limit": limit})

    def tags(self, *, offset: int | None = None, limit: int | None = None) -> list[str]:
        """List tags that several jobs have, most used first."""
        return self._call("GET", ["tags"], {"offset": offset, "limit": limit})

    @overload
    def track(self, data: str | TrackItem) -> Any: ...

    @overload
    def track(self, data: list[str | TrackItem]) -> list[Any | QlessError]: ...

    def track(self, data: Any) -> Any:
        """Track jobs."""
        return self._call("POST", ["track"], body=self._body(data))

    @overload
    def untrack(self, data: str | UntrackItem) -> Any: ...

    @overload
    def untrack(self, data: list[str | UntrackItem]) -> list[Any | QlessError]: ...

    def untrack(self, data: Any) -> Any:
        """Stop tracking jobs."""
        return self._call("POST", ["untrack"], body=self._body(data))

    def tracked(self) -> TrackedResult:
        """List tracked jobs."""
        return self._call("GET", ["tracked"], {})

    @overload
    def time_out(self, data: str | TimeOutItem) -> Any: ...

    @overload
    def time_out(self, data: list[str | TimeOutItem]) -> list[Any | QlessError]: ...

    def time_out(self, data: Any) -> Any:
        """Take jobs from their workers."""
        return self._call("POST", ["timeout"], body=self._body(data))

    @overload
    def log(self, data: LogItem) -> Any: ...

    @overload
    def log(self, data: list[LogItem]) -> list[Any | QlessError]: ...

    def log(self, data: Any) -> Any:
        """Add entries to histories."""
        return self._call("POST", ["log"], body=self._body(data))

    def job(self, id: str) -> Job:
        """Read a job."""
        return self._call("GET", ["job", id], {})

    def jobs(self, ids: Sequence[str]) -> list[Job | None]:
        """Read several jobs."""
        return self._call("GET", ["jobs"], {"id": ids})

    def complete_jobs(self, *, offset: int | None = None, limit: int | None = None, full: bool | None = None) -> list[str] | list[Job]:
        """List completed jobs, newest first."""
        return self._call("GET", ["jobs", "complete"], {"offset": offset, "limit": limit, "full": full})

    def jobs_by_state(self, state: Literal['waiting', 'running', 'stalled', 'scheduled', 'depends', 'recurring'], queue: str, *, offset: int | None = None, limit: int | None = None, full: bool | None = None) -> list[Any]:
        """List jobs of a queue by state."""
        return self._call("GET", ["jobs", state, queue], {"offset": offset, "limit": limit, "full": full})

    def queues(self) -> list[Queue]:
        """List queues with their counts."""
        return self._call("GET", ["queues"], {})

    def queue(self, queue: str) -> Queue:
        """Read the counts of a queue."""
        return self._call("GET", ["queue", queue], {})

    def forget(self, queue: str) -> Any:
        """Remove a queue from the lists until a job is put into it."""
        return self._call("DELETE", ["queue", queue], {})

    def pause(self, queue: str) -> Any:
        """Pause a queue."""
        return self._call("POST", ["pause", queue], {})

    def resume(self, queue: str) -> Any:
        """Resume a queue."""
        return self._call("POST", ["unpause", queue], {})

    def stats(self, queue: str) -> dict[str, Any]:
        """Read the statistics of a queue for one day."""
        return self._call("GET", ["stats", queue], {})

    def stats_of(self, queue: str, date: str) -> dict[str, Any]:
        """Read the statistics of a queue for one day."""
        return self._call("GET", ["stats", queue, date], {})

    def workers(self) -> list[WorkersResult]:
        """List workers."""
        return self._call("GET", ["workers"], {})

    def worker_jobs(self, worker: str) -> WorkerJobsResult:
        """List the jobs of a worker."""
        return self._call("GET", ["worker", worker], {})

    def forget_worker(self, worker: str) -> Any:
        """Remove a worker from the lists until it tries to claim a job or sends a heartbeat."""
        return self._call("DELETE", ["worker", worker], {})

    def failures(self) -> dict[str, Any]:
        """Count failed jobs by failure group."""
        return self._call("GET", ["failed"], {})

    def failed(self, group: str, *, offset: int | None = None, limit: int | None = None) -> FailedResult:
        """List the failed jobs of a group."""
        return self._call("GET", ["failed", group], {"offset": offset, "limit": limit})

    def unfail(self, queue: str, data: UnfailItem) -> int:
        """Move failed jobs to a queue."""
        return self._call("POST", ["unfail", queue], body=self._body(data))

    def options(self) -> dict[str, Any]:
        """Read all options."""
        return self._call("GET", ["config"], {})

    def option(self, option: str) -> Any:
        """Read an option."""
        return self._call("GET", ["config", option], {})

    def set_option(self, option: str, data: Any) -> Any:
        """Set an option, or unset it with null."""
        return self._call("PUT", ["config", option], body=self._body(data))

    def unset_option(self, option: str) -> Any:
        """Unset an option."""
        return self._call("DELETE", ["config", option], {})

    @overload
    def recur(self, queue: str, data: RecurItem) -> str: ...

    @overload
    def recur(self, queue: str, data: list[RecurItem]) -> list[str | QlessError]: ...

    def recur(self, queue: str, data: Any) -> Any:
        """Create recurring jobs."""
        return self._call("POST", ["recur", queue], body=self._body(data))

    def recurring(self, id: str) -> dict[str, Any]:
        """Read a recurring job."""
        return self._call("GET", ["recurring", id], {})

    def change_recurring(self, id: str, data: ChangeRecurringItem) -> Any:
        """Change a recurring job."""
        return self._call("POST", ["recurring", id], body=self._body(data))

    def unrecur(self, id: str) -> Any:
        """End a recurring job; the jobs that it has created stay."""
        return self._call("DELETE", ["recurring", id], {})

    def events(self, *, after: int | None = None, limit: int | None = None, channel: str | None = None) -> EventsResult:
        """Read events."""
        return self._call("GET", ["events"], {"after": after, "limit": limit, "channel": channel})
