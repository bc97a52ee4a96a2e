"""The programs in docs/clients, and the typed clients in clients/, against the server."""

import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from server import PATIENCE_S, Server

ROOT = Path(__file__).resolve().parent.parent.parent


def programs(page, language):
    """The programs of this language on the page."""
    text = (ROOT / "docs/clients" / (page + ".md")).read_text()
    return re.findall(r"^```%s\n(.*?)^```" % language, text, re.MULTILINE | re.DOTALL)


class WithServer(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.server = Server("sqlite://%s/jobs.db" % folder.name)
        self.addCleanup(self.server.kill)

    def run_program(self, command, folder=None, **environment):
        environment = {**os.environ, "SWITCHYARD_SERVER": self.server.http, **environment}
        done = subprocess.run(
            command, cwd=folder or self.folder, env=environment, capture_output=True, text=True, timeout=4 * PATIENCE_S,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout


class Pages(WithServer):
    def check(self, page, language, name, command, count=1):
        found = programs(page, language)
        self.assertEqual(len(found), count, page)
        for number, program in enumerate(found, 1):
            (self.folder / name).write_text(program)
            output = self.run_program(command)
            self.assertIn("ada@example.com", output)
            self.assertEqual(len(output.splitlines()), 1, output)
            complete = self.python_client().complete_jobs()
            self.assertEqual(len(complete), number)

    def python_client(self):
        return load_python_client().Client(self.server.http)

    def test_python(self):
        os.symlink(ROOT / "clients/python/switchyard_qless.py", self.folder / "switchyard_qless.py")
        self.check("python", "python", "work.py", [sys.executable, "-B", "work.py"], count=2)

    def test_typescript(self):
        modules = self.folder / "node_modules"
        modules.mkdir()
        os.symlink(ROOT / "clients/typescript", modules / "switchyard-qless")
        self.check("typescript", "js", "work.mjs", ["node", "work.mjs"], count=2)

    @unittest.skipUnless(shutil.which("javac"), "javac is not installed")
    def test_java(self):
        self.check("java", "java", "Worker.java", ["java", "Worker.java"])

    @unittest.skipUnless(shutil.which("ruby"), "ruby is not installed")
    def test_ruby(self):
        self.check("ruby", "ruby", "work.rb", ["ruby", "work.rb"])

    @unittest.skipUnless(shutil.which("php"), "php is not installed")
    def test_php(self):
        self.check("php", "php", "work.php", ["php", "work.php"])

    @unittest.skipUnless(shutil.which("go"), "go is not installed")
    def test_go(self):
        self.check("go", "go", "work.go", ["go", "run", "work.go"])


def load_python_client():
    sys.dont_write_bytecode = True
    path = str(ROOT / "clients/python")
    if path not in sys.path:
        sys.path.insert(0, path)
    return importlib.import_module("switchyard_qless")


class TypedClients(WithServer):
    def test_the_clients_are_those_that_the_description_generates(self):
        self.run_program([sys.executable, ROOT / "clients/generate.py", self.folder / "made"])
        for path in ("python/switchyard_qless.py", "typescript/index.js", "typescript/index.d.ts"):
            made, kept = (self.folder / "made" / path).read_text(), (ROOT / "clients" / path).read_text()
            self.assertTrue(made == kept, "run clients/generate.py: %s differs" % path)

    def test_every_call_of_python(self):
        module = load_python_client()
        client = module.Client(self.server.http, worker="w")
        self.assertEqual(client.put("a/b ü", {"id": "one", "meta": {"n": 1}, "tags": ["t"], "priority": -1}), "one")
        put = client.put("a/b ü", [{"meta": 2, "id": "two", "tags": ["t"]}, {"meta": 3, "depends": ["two"], "id": "three"}])
        self.assertEqual(put, ["two", "three"])
        self.assertEqual([job["id"] for job in client.peek("a/b ü", 1)], ["one"])
        self.assertEqual(client.peek("empty", 5), [])
        job = client.claim("a/b ü", wait=1)
        self.assertEqual((job["id"], job["meta"], job["worker"]), ("one", {"n": 1}, "w"))
        self.assertGreater(client.heartbeat("a/b ü", "one"), 0)
        refused, kept = client.heartbeat("a/b ü", ["two", "one"])
        self.assertEqual((refused.code, kept), ("not_running", 60))
        self.assertEqual((client.workers()[0]["name"], client.worker_jobs("w")["jobs"]), ("w", ["one"]))
        self.assertEqual(client.retry("a/b ü", {"id": "one"}), 4)
        self.assertEqual([job["id"] for job in client.claim_many("a/b ü", 2)], ["one", "two"])
        self.assertEqual(client.fail("a/b ü", {"id": "two", "group": "g", "message": "m"}), "two")
        self.assertEqual((client.failures(), client.failed("g")["total"]), ({"g": 1}, 1))
        self.assertEqual(client.unfail("a/b ü", {"group": "g"}), 1)
        with self.assertRaises(module.QlessError) as error:
            client.complete("a/b ü", {"id": "two", "meta": 0})
        self.assertEqual((error.exception.code, error.exception.status), ("not_running", 409))
        client.pause("a/b ü")
        self.assertTrue(client.queue("a/b ü")["paused"])
        self.assertIsNone(client.claim("a/b ü"))
        client.resume("a/b ü")
        items = [{"id": "two", "meta": 0}, {"id": "one", "meta": 1, "next": "more"}]
        refused, done = client.complete("a/b ü", items)
        self.assertEqual((refused.code, done), ("not_running", "one"))
        self.assertEqual(client.claim_from({"queues": ["empty", "more"]})["id"], "one")
        self.assertEqual(client.tag({"id": "one", "tags": ["u"]}), ["t", "u"])
        self.assertEqual(client.untag({"id": "one", "tags": ["u"]}), ["t"])
        self.assertEqual((client.tagged("t")["total"], client.tags()), (2, ["t"]))
        client.track("one")
        self.assertEqual([job["id"] for job in client.tracked()["jobs"]], ["one"])
        client.untrack("one")
        client.log({"id": "one", "message": "seen", "data": {"by": "ada"}})
        self.assertIn("seen", [entry["what"] for entry in client.job("one")["history"]])
        client.time_out("one")
        self.assertEqual(client.prioritize({"id": "two", "priority": 3}), 3)
        client.depend({"id": "three", "off": "all"})
        self.assertEqual(client.job("three")["state"], "waiting")
        self.assertEqual(client.requeue("other", {"id": "three", "meta": 4, "delay": 600}), "three")
        self.assertEqual(client.jobs_by_state("scheduled", "other"), ["three"])
        self.assertEqual([job and job["id"] for job in client.jobs(["three", "none"])], ["three", None])
        self.assertEqual({queue["name"] for queue in client.queues()} >= {"a/b ü", "more", "other"}, True)
        client.set_option("heartbeat", 77)
        self.assertEqual((client.option("heartbeat"), client.options()["heartbeat"]), (77, 77))
        client.unset_option("heartbeat")
        self.assertEqual(client.recur("daily", {"id": "r", "meta": 1, "interval": 86400}), "r")
        client.change_recurring("r", {"priority": 2})
        self.assertEqual(client.recurring("r")["priority"], 2)
        client.unrecur("r")
        self.assertEqual(len(client.events(limit=5)["events"]), 5)
        client.stats("more")
        client.stats_of("more", "2026-01-01")
        client.forget_worker("w")
        self.assertEqual(client.cancel(["one", "two", "three"]), ["one", "two", "three"])
        client.forget("more")
        self.assertEqual(client.complete_jobs(limit=10), [])

    def test_calls_of_typescript(self):
        program = """
import assert from "node:assert/strict";
import { Client, QlessError } from "%s";
const client = new Client(process.env.SWITCHYARD_SERVER, { worker: "w" });
assert.equal(await client.put("a/b", { id: "one", meta: { n: 1 }, tags: ["t"] }), "one");
assert.deepEqual(await client.put("a/b", [{ id: "two", meta: 2 }]), ["two"]);
assert.deepEqual((await client.peek("a/b", 1)).map((job) => job.id), ["one"]);
const job = await client.claim("a/b", { wait: 1 });
assert.deepEqual([job.id, job.meta, job.worker], ["one", { n: 1 }, "w"]);
const [refused, kept] = await client.heartbeat("a/b", ["two", "one"]);
assert.ok(refused instanceof QlessError && refused.code === "not_running" && kept === 60);
await assert.rejects(client.complete("a/b", { id: "two", meta: 0 }), { code: "not_running", status: 409 });
assert.deepEqual((await client.jobs(["one", "none"])).map((job) => job?.id), ["one", undefined]);
const [undone, done] = await client.complete("a/b", [{ id: "two", meta: 0 }, { id: "one", meta: 1, next: "more" }]);
assert.deepEqual([undone.code, done], ["not_running", "one"]);
assert.equal((await client.claimFrom({ queues: ["none", "more"] })).id, "one");
assert.deepEqual(await client.jobsByState("running", "more", { limit: 1, full: false }), ["one"]);
await client.setOption("heartbeat", 5);
assert.equal(await client.option("heartbeat"), 5);
assert.deepEqual(await client.cancel(["one", "two"]), ["one", "two"]);
console.log("done");
"""
        (self.folder / "calls.mjs").write_text(program % (ROOT / "clients/typescript/index.js"))
        self.assertEqual(self.run_program(["node", "calls.mjs"]), "done\n")

    def test_a_token_is_sent(self):
        module = load_python_client()
        token = "the-token-of-qless-clients"
        server = Server("sqlite::memory:", more=["--qless-token", token])
        self.addCleanup(server.kill)
        self.assertEqual(module.Client(server.http + "/", token=token).queues(), [])
        for other in (module.Client(server.http), module.Client(server.http, token="another-token-of-clients")):
            with self.assertRaises(module.QlessError) as error:
                other.queues()
            self.assertEqual(error.exception.status, 401)


if __name__ == "__main__":
    unittest.main()
