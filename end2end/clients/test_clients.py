"""The original client of qless, its workers, redis-py, ruby-redis and the programs of Redis, against the server.

Each test starts a server of its own on an SQLite file.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

import qless
import qless.listener
import redis

from crash import SCRIPT, crash
from server import PATIENCE_S, Server, until

JOBS = '''
class Greet(object):
    @staticmethod
    def work(job):
        with open(job["file"], "a") as file:
            file.write(job.jid + "\\n")
        job.complete()


class Break(object):
    @staticmethod
    def work(job):
        raise ValueError("broken")

'''

class Clients(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "jobs_of_test.py").write_text(JOBS)
        sys.path.insert(0, folder.name)
        self.addCleanup(sys.path.remove, folder.name)
        self.server = Server(self.database("jobs"))
        self.addCleanup(lambda: self.server.kill())
        self.client = qless.Client(self.server.url)
        self.queue = self.client.queues["work"]
        self.done = self.folder / "done"

    def database(self, name):
        return "sqlite://%s/%s.db" % (self.folder, name)

    def worker(self, workers=1):
        """Starts the original program. Its processes are a group, which ends with the test."""
        program = Path(sys.executable).with_name("qless-py-worker")
        worker = subprocess.Popen(
            [
                program, "--host", self.server.url, "--path", self.folder, "--workdir", self.folder,
                "--queue", "work", "--workers", str(workers), "--interval", "1",
            ],
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

        def end():
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()

        self.addCleanup(end)

    def put(self, name):
        return self.queue.put("jobs_of_test." + name, {"file": str(self.done)}, retries=1)

    def lines(self):
        return self.done.read_text().split() if self.done.exists() else []

    def test_a_worker_completes_and_fails_jobs(self):
        jids = [self.put("Greet") for _ in range(20)]
        broken = self.put("Break")
        self.worker(workers=2)
        until(lambda: self.client.jobs[broken].state == "failed")
        until(lambda: all(self.client.jobs[jid].state == "complete" for jid in jids))
        self.assertEqual(sorted(self.lines()), sorted(jids))
        failure = self.client.jobs[broken].failure
        self.assertIn("ValueError", failure["group"])
        self.assertEqual(self.client.jobs.failed(), {failure["group"]: 1})

    def test_a_worker_is_notified_of_a_lost_lease(self):
        jid = self.put("Greet")
        job = self.queue.pop()
        # As the workers of the client do.
        listener = qless.listener.Listener(self.client.redis, ["ql:w:" + self.client.worker_name])
        messages = []
        thread = threading.Thread(target=lambda: messages.extend(listener.listen()))
        thread.start()
        until(lambda: self.client.redis.pubsub_numsub("ql:w:" + self.client.worker_name)[0][1])
        job.timeout()
        # The message is sent before the reply to the command.
        listener.unlisten()
        thread.join()
        events = [json.loads(message["data"]) for message in messages]
        lost = {"event": "lock_lost", "jid": jid, "worker": self.client.worker_name}
        self.assertEqual(events, [lost])

    def test_the_verbs_of_a_worker(self):
        jid = self.put("Greet")
        job = self.queue.pop()
        self.assertEqual((job.jid, job.state, job.worker_name), (jid, "running", self.client.worker_name))
        self.assertGreater(job.heartbeat(), time.time())
        self.assertEqual(job.retry(), 0)
        job = self.queue.pop()
        job["more"] = "data"
        self.assertEqual(job.complete("next"), "waiting")
        other = qless.Client(self.server.url)
        other.worker_name = "other"
        job = other.queues["next"].pop()
        self.assertEqual(job["more"], "data")
        with self.assertRaisesRegex(qless.exceptions.QlessException, "given out to another worker: other"):
            self.client("heartbeat", jid, self.client.worker_name, "{}")
        job.fail("group", "message")
        self.assertEqual(self.client.jobs.failed("group")["jobs"][0].jid, jid)

    def test_messages_and_replies_of_redis_py(self):
        for protocol in (2, 3):
            client = redis.Redis(port=self.server.port, protocol=protocol, client_name="test")
            self.assertTrue(client.ping())
            self.assertEqual(client.client_getname() in ("test", b"test"), True)
            messages = client.pubsub()
            messages.subscribe("ql:log")
            until(lambda: messages.get_message(timeout=1))
            jid = self.put("Greet")
            message = until(lambda: messages.get_message(timeout=1))
            event = {"jid": jid, "event": "put", "queue": "work"}
            self.assertEqual(json.loads(message["data"]), event)
            messages.close()
            client.close()

    def test_the_programs_of_redis(self):
        def run(program, *arguments):
            command = [program, "-p", str(self.server.port), *arguments]
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout.strip()

        self.assertEqual(run("redis-cli", "ping"), "PONG")
        self.assertIn("redis_version:", run("redis-cli", "info"))
        sha = run("redis-cli", "script", "load", "local QlessAPI = {}")
        put = ["evalsha", sha, "0", "put", "0", "w", "work", "__rand_int__", "Greet", "{}", "0"]
        run("redis-benchmark", "-q", "-n", "400", "-c", "20", "-P", "8", "-r", "1000000000", *put)
        self.assertGreater(len(self.queue), 390)

    def test_a_worker_in_ruby(self):
        program = Path(__file__).with_name("worker.rb")
        command = ["ruby", program, "verbs", self.server.url, SCRIPT]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.client.jobs["a"].state, "complete")

    def test_nothing_is_lost_when_the_server_is_killed(self):
        run = crash(self.database("crash"), jobs=300, kills=3, worker="both")
        self.assertGreaterEqual(len(run.acknowledged), 300)

    def test_a_worker_completes_the_jobs_put_before_a_kill_of_the_server(self):
        jids = [self.put("Greet") for _ in range(20)]
        self.server = self.server.restarted()
        self.worker(workers=2)
        until(lambda: set(jids) <= set(self.lines()))


if __name__ == "__main__":
    unittest.main()
