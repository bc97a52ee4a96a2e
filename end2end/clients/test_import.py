"""`switchyard import --from-redis`: moves qless and lmstfy from a real Redis server.

The data of qless is made by qless-core's own Lua, which the client contains. lmstfy has no package, so its keys are
written as its source does (bitleak/lmstfy, engine/redis: pool.go, queue.go, timer.go, deadletter.go, and auth/token.go).
"""

import base64
import json
import os
import pkgutil
import socket
import sqlite3
import struct
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request
from contextlib import closing
from pathlib import Path

import qless
import redis

from server import Server, until

ULID = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


class RedisServer:
    """A Redis server with an empty database."""

    def __init__(self, folder):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.process = subprocess.Popen(
            [
                "redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
                "--dir", folder, "--daemonize", "no",
            ],
            stdout=subprocess.DEVNULL,
        )
        self.url = "redis://127.0.0.1:%d/3" % self.port
        self.client = redis.Redis.from_url(self.url)

        def responds():
            try:
                return self.client.ping()
            except redis.ConnectionError:
                return False

        until(responds)

    def kill(self):
        self.client.close()
        self.process.kill()
        self.process.wait()


def original_client(url):
    """The original client on Redis. Redis 7 does not let scripts add a function to Lua's `table`."""
    client = qless.Client(url)
    lua = pkgutil.get_data("qless", "qless-core/qless.lua").decode()
    assert "function table.extend" in lua
    lua = lua.replace("function table.extend(", "local function table_extend(")
    client._lua = client.redis.register_script(lua.replace("table.extend(", "table_extend("))
    return client


def ulid(seconds, delay, number):
    """The ID that lmstfy gives to a job: a ULID whose last four bytes are the delay."""
    delay = int.from_bytes(struct.pack("<I", delay), "big")
    bits = (int(seconds * 1000) << 80) | (number << 32) | delay
    return "".join(ULID[(bits >> (5 * n)) & 31] for n in reversed(range(26)))


def packed(tries, job_id):
    return struct.pack("<HH", tries, len(job_id)) + job_id.encode()


def timer(namespace, queue, tries, job_id):
    names = b"".join(struct.pack("<H", len(name)) + name.encode() for name in (namespace, queue))
    return names + packed(tries, job_id)


class Import(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.source = RedisServer(self.folder)
        self.addCleanup(self.source.kill)

    def run_import(self, *options, database="jobs.db", status=0):
        command = [
            os.environ["SWITCHYARD"], "import", "--from-redis", self.source.url,
            "--database", "sqlite://%s/%s" % (self.folder, database), *options,
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout if status == 0 else done.stderr

    def counts(self, report):
        """The numbers of each row of the report: found, imported, already exist (None for a dry run), skipped."""
        rows = {}
        for line in report.splitlines():
            words = line.split()
            if len(words) > 4 and all(word.isdigit() or word == "–" for word in words[-4:]):
                rows[" ".join(words[:-4])] = tuple(None if word == "–" else int(word) for word in words[-4:])
        return rows

    def serve(self):
        server = Server("sqlite://%s/jobs.db" % self.folder)
        self.addCleanup(server.kill)
        return server

    def fill_qless(self):
        """Jobs in every state, by the original client and its Lua."""
        client = original_client(self.source.url)
        self.client = client
        work, other = client.queues["work"], client.queues["other"]
        client.config["heartbeat"] = 120
        client.config["work-max-concurrency"] = 50
        client.config["owner"] = "ada"
        for n, priority in enumerate([0, 5, 0, -2]):
            work.put("jobs.Greet", {"n": n, "big": "ü"}, jid="w%d" % n, priority=priority, tags=["a", "b%d" % n], retries=3)
        work.put("jobs.Greet", {}, jid="later", delay=3600)
        work.put("jobs.Greet", {}, jid="child", depends=["w0", "w1"])
        # Each job of this queue but the last is claimed before the next one is put.
        other.put("jobs.Greet", {"x": [1.5, None]}, jid="running")
        other.pop()
        other.put("jobs.Greet", {}, jid="broken", tags=["a"])
        other.pop().fail("SmtpError", "connection\nrefused")
        other.put("jobs.Greet", {}, jid="done")
        other.pop().complete()
        other.put("jobs.Greet", {}, jid="moved")
        other.pop().complete("next", delay=600)
        other.put("jobs.Greet", {}, jid="timedout", retries=2)
        other.pop().timeout()
        other.put("jobs.Greet", {}, jid="noted")
        client("log", "noted", "looked at", json.dumps({"by": "ada"}))
        work.recur("jobs.Greet", {"again": True}, 60, offset=3600, jid="again", tags=["r"], retries=4)
        client.track("w0")
        client.queues["held"].put("jobs.Greet", {}, jid="held")
        client.queues["held"].pause()
        return client

    def jobs(self, server_client, jids):
        """What the client sees of these jobs, without times that depend on the moment."""
        seen = {}
        for jid in jids:
            job = json.loads(server_client("get", jid))
            for key in ("tags", "dependencies", "dependents"):
                job[key] = sorted(job[key] or [])
            job["data"] = json.loads(job["data"])
            # The server returns this field; the qless-core of this client does not know it.
            job.pop("spawned_from_jid", None)
            seen[jid] = job
        return seen

    JIDS = ["w0", "w1", "w2", "w3", "later", "child", "running", "broken", "done", "moved", "timedout", "noted", "held"]

    def test_qless_jobs_of_all_states_are_the_same_afterwards(self):
        client = self.fill_qless()
        before = self.jobs(client, self.JIDS)
        queues = json.loads(client("queues"))
        report = self.run_import()
        rows = self.counts(report)
        expected = {"waiting": 6, "scheduled": 2, "depends": 1, "running": 1, "failed": 1, "complete": 1, "stalled": 1}
        for state, count in expected.items():
            self.assertEqual(rows["qless " + state], (count, count, 0, 0), report)
        self.assertEqual(rows["qless recurring"], (1, 1, 0, 0))
        self.assertEqual(rows["qless tracked jobs"], (1, 1, 0, 0))

        server = self.serve()
        moved = qless.Client(server.url)
        after = self.jobs(moved, self.JIDS)
        # qless-core leaves the state of a job that it moves with a delay, and the worker of one that timed out.
        self.assertEqual(before["moved"].pop("state"), "waiting")
        self.assertEqual(after["moved"].pop("state"), "scheduled")
        before["timedout"]["worker"] = ""
        for jid in self.JIDS:
            # Lua writes 14 digits of this time into the hash.
            self.assertAlmostEqual(after[jid].pop("expires"), before[jid].pop("expires"), delta=1e-3)
            self.assertEqual(after[jid], before[jid], jid)
        for queue in json.loads(moved("queues")):
            was = next(it for it in queues if it["name"] == queue["name"])
            # A job that timed out is waiting in both, and listed as stalled here only.
            for key in ("running", "scheduled", "depends", "recurring", "paused"):
                self.assertEqual(queue[key], was[key], (queue["name"], key))
        recurring, was = (json.loads(it("recur.get", "again")) for it in (moved, client))
        self.assertEqual(recurring, was)
        self.assertEqual(int(moved.config["work-max-concurrency"]), 50)
        self.assertEqual(moved("config.get", "owner"), client("config.get", "owner"))
        self.assertEqual(int(moved.config["grace-period"]), 10)
        self.assertEqual({it["name"] for it in json.loads(moved("workers"))}, {client.worker_name})

        # Work continues: in the same order, by the worker that held the job, and dependents are released.
        moved.jobs["running"].complete()
        self.assertEqual([job.jid for job in moved.queues["work"].pop(4)], ["w1", "w0", "w2", "w3"])
        for jid in ("w0", "w1"):
            moved.jobs[jid].complete()
        self.assertEqual(moved.queues["work"].pop().jid, "child")
        self.assertEqual(moved.queues["other"].pop().jid, "timedout")
        self.assertIsNone(moved.queues["held"].pop())
        moved.queues["held"].unpause()
        self.assertEqual(moved.queues["held"].pop().jid, "held")

    def test_an_import_is_refused_or_completed_if_the_target_has_the_jobs(self):
        self.fill_qless()
        self.assertEqual(self.counts(self.run_import("--dry-run"))["qless waiting"], (6, 6, None, 0))
        self.assertFalse(Path(self.folder, "jobs.db").exists())
        self.run_import()
        error = self.run_import(status=1)
        self.assertIn("nothing was imported: the target already has 13 of the source's jobs", error)
        self.client.queues["work"].put("jobs.Greet", {}, jid="new")
        rows = self.counts(self.run_import("--existing", "keep"))
        self.assertEqual(rows["qless waiting"], (7, 1, 6, 0))
        self.assertEqual(rows["qless recurring"], (1, 0, 1, 0))

    def test_what_cannot_be_imported_is_named(self):
        client = self.fill_qless()
        source = client.redis
        source.hset("ql:j:w2", "data", "not json")
        source.zadd("ql:q:work-work", {"gone": 0})
        source.hset("ql:j:lost", mapping={"jid": "lost", "state": "waiting", "queue": "work", "data": "{}"})
        source.set("session:1", "x")
        report = self.run_import()
        self.assertEqual(self.counts(report)["qless waiting"], (7, 5, 0, 2))
        for text in (
            "qless waiting: its data is not JSON (w2)",
            "qless waiting: its data is missing (gone)",
            "2 job hashes of qless are not in the target",
            "not imported: other keys (1)",
        ):
            self.assertIn(text, report)

    def test_texts_and_numbers_that_no_api_accepts_are_cut(self):
        source = self.fill_qless().redis
        failure = {"group": "SmtpError", "message": "m" * 100_000, "when": 1_700_000_000, "worker": "w" * 1_000_000}
        source.hset("ql:j:broken", "failure", json.dumps(failure))
        source.hset("ql:j:w0", "spawned_from_jid", "s" * 1_000_000)
        source.lset("ql:j:w0-history", 0, json.dumps([1_700_000_000, "put", {"q": "q" * 1_000_000}]))
        source.hset("ql:r:again", "count", str(2**63 - 1))
        source.zadd("ql:q:work-recur", {"again": int(time.time()) - 1})
        self.run_import()
        moved = qless.Client(self.serve().url)
        failure = json.loads(moved("get", "broken"))["failure"]
        self.assertEqual((len(failure["message"]), len(failure["worker"])), (65_536, 255))
        job = json.loads(moved("get", "w0"))
        self.assertNotIn("spawned_from_jid", job)
        self.assertEqual(len(job["history"][0]["q"]), 255)
        jids = [job.jid for job in moved.queues["work"].pop(10)]
        self.assertIn("again-%d" % 2**62, jids)

    def test_a_running_server_and_a_wrong_source_are_refused(self):
        server = self.serve()
        self.assertIn("another server has this database open", self.run_import(status=1))
        server.kill()
        self.source.client.close()
        url = self.source.url
        self.source.url = url.replace("redis://", "rediss://")
        self.assertIn("rediss:// is not supported", self.run_import(status=1))
        self.source.url = url.rsplit("/", 1)[0] + "/99"
        self.assertIn("SELECT", self.run_import(status=1))
        self.source.url = url

    def fill_bulk(self):
        """3,000 waiting jobs, as `put` leaves them."""
        source = self.source.client
        pipe = source.pipeline(transaction=False)
        now = time.time()
        for n in range(3000):
            jid = "job-%05d" % n
            pipe.hset(
                "ql:j:" + jid,
                mapping={
                    "jid": jid, "klass": "K", "data": json.dumps({"n": n, "text": "x" * 2000}), "priority": 0, "tags": "{}",
                    "state": "waiting", "worker": "", "expires": 0, "queue": "bulk", "retries": 5, "remaining": 5,
                    "time": now + n,
                },
            )
            pipe.rpush("ql:j:%s-history" % jid, json.dumps([int(now), "put", {"q": "bulk"}]))
            pipe.zadd("ql:q:bulk-work", {jid: -(now - 3000 + n) / 1e10})
        pipe.execute()

    def test_many_jobs_keep_their_order(self):
        self.fill_bulk()
        self.assertEqual(self.counts(self.run_import())["qless waiting"], (3000, 3000, 0, 0))
        moved = qless.Client(self.serve().url)
        popped = [job.jid for job in moved.queues["bulk"].pop(300)]
        self.assertEqual(popped, ["job-%05d" % n for n in range(300)])

    def test_the_next_import_completes_one_that_was_killed(self):
        self.fill_bulk()
        file = Path(self.folder, "jobs.db")
        command = [os.environ["SWITCHYARD"], "import", "--from-redis", self.source.url, "--database", "sqlite://%s" % file]
        killed = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def has_begun():
            if killed.poll() is not None:
                return True
            try:
                with closing(sqlite3.connect("file:%s?mode=ro" % file, uri=True)) as database:
                    return database.execute("SELECT count(*) FROM jobs").fetchone()[0] > 0
            except sqlite3.Error:
                return False

        until(has_begun)
        killed.kill()
        killed.wait()
        found, imported, existing, skipped = self.counts(self.run_import("--existing", "keep"))["qless waiting"]
        self.assertEqual((found, imported + existing, skipped), (3000, 3000, 0))
        self.assertGreater(existing, 0)
        with urllib.request.urlopen(self.serve().http + "/check", timeout=30) as response:
            self.assertEqual(json.load(response)["results"], {"problems": []})

    def fill_lmstfy(self):
        source, now = self.source.client, time.time()
        self.ids = {}

        def body(name, queue, delay=0, ttl=None, text=None, version=""):
            number = len(self.ids) + 1
            self.ids[name] = version + ulid(now - 100 + number, delay, number)
            key = "j/team/%s/%s" % (queue, self.ids[name])
            source.set(key, (text or name).encode(), ex=ttl)
            return self.ids[name]

        for name, tries in (("first", 3), ("second", 1)):
            source.lpush("q/team/mail", packed(tries, body(name, "mail", ttl=5000)))
        source.lpush("q/team/mail", packed(1, ulid(now - 500, 0, 99)))  # acknowledged: it has no body
        attributes = json.dumps({"body": base64.b64encode(b"\x00\xff").decode(), "attributes": {"kind": "x"}})
        source.lpush("q/team/mail", packed(2, body("with", "mail", text=attributes, version="1")))
        delayed = body("delayed", "mail", delay=700)
        source.zadd("timer_set", {timer("team", "mail", 2, delayed): int(now - 100 + 4 + 700)})
        running, last = body("running", "mail"), body("last", "mail")
        source.zadd("timer_set", {timer("team", "mail", 1, running): int(now) + 400})
        source.zadd("timer_set", {timer("team", "mail", 0, last): int(now) + 500})
        for name in ("dead1", "dead2"):
            source.lpush("d/team/mail", packed(1, body(name, "mail")))
        source.hset("m/ns", "team", 1)
        source.hset("m/ns/team", "mail", 1)
        self.token = "01H000000000000000000TOKEN"
        source.hset("tk/default/team", self.token, "mailers")
        source.hset("tk/backup/team", "01H000000000000000000OTHER", "other pool")

    def test_lmstfy_jobs_and_tokens_are_the_same_afterwards(self):
        self.fill_lmstfy()
        report = self.run_import()
        rows = self.counts(report)
        expected = {"waiting": 3, "scheduled": 1, "running": 2, "dead": 2}
        for state, count in expected.items():
            self.assertEqual(rows["lmstfy " + state], (count, count, 0, 0), report)
        self.assertEqual(rows["lmstfy tokens"], (2, 1, 0, 1))
        self.assertIn("acknowledged or expired: 1\n", report)
        self.assertNotIn(self.token, report)
        server = self.serve()

        def call(method, path):
            request = urllib.request.Request(server.http + "/api/team/mail" + path, method=method)
            request.add_header("X-Token", self.token)
            try:
                with urllib.request.urlopen(request, timeout=30) as response:
                    text = response.read()
                    return json.loads(text) if text else None
            except urllib.error.HTTPError as error:
                return error.code

        self.assertEqual(call("GET", "/size")["size"], 3)
        delayed = call("GET", "/job/" + self.ids["delayed"])
        self.assertEqual(base64.b64decode(delayed["data"]), b"delayed")
        consumed = [call("GET", "?ttr=100") for _ in range(3)]
        self.assertEqual([job["job_id"] for job in consumed], [self.ids[name] for name in ("first", "second", "with")])
        self.assertEqual([job["remain_tries"] for job in consumed], [2, 0, 1])
        self.assertTrue(4900 < consumed[0]["ttl"] <= 5000, consumed[0])
        self.assertEqual(base64.b64decode(consumed[2]["data"]), b"\x00\xff")
        self.assertEqual(consumed[2]["attributes"], {"kind": "x"})
        self.assertEqual(call("GET", ""), 404)
        # The consumers of Redis acknowledge here.
        self.assertIsNone(call("DELETE", "/job/" + self.ids["running"]))
        self.assertEqual(call("GET", "/job/" + self.ids["running"]), 404)
        dead = call("GET", "/deadletter")
        self.assertEqual((dead["deadletter_size"], dead["deadletter_head"]), (2, self.ids["dead1"]))
        self.assertEqual(call("PUT", "/deadletter?limit=10")["count"], 2)
        self.assertEqual(call("GET", "")["job_id"], self.ids["dead1"])
        self.token = "01H000000000000000000OTHER"
        self.assertEqual(call("GET", "/size"), 401)


if __name__ == "__main__":
    unittest.main()
