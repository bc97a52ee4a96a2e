"""Kills the server while clients put and work off jobs, and checks that no acknowledged job is lost:

    SWITCHYARD=… python crash.py [--jobs 10000] [--kills 8] [--worker python|ruby|both]

The database is a new SQLite file, or a new one of the Postgres in SWITCHYARD_TEST_POSTGRES.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from pathlib import Path

import qless
import redis
from qless.exceptions import QlessException

from server import Server, until

PUTTERS = 3

# Of each kind.
WORKERS = 3

# Leases of claims whose reply was lost end soon.
HEARTBEAT_S = 1

# The time in which the workers must finish after the last kill.
PATIENCE_S = 300

UNREACHABLE = (redis.ConnectionError, redis.TimeoutError)

# The script of the Python client, which both clients load.
SCRIPT = Path(qless.__file__).with_name("qless-core") / "qless.lua"


class Crash:
    def __init__(self, server, jobs, kills):
        self.server, self.jobs, self.kills = server, jobs, kills
        self.acknowledged, self.completed, self.refused = [], [], 0
        self.stopping = threading.Event()

    def client(self):
        while True:
            try:
                return qless.Client(self.server.url)
            except UNREACHABLE:
                time.sleep(0.01)

    def put(self):
        """Puts jobs. One whose put was not acknowledged is forgotten: another one takes its place."""
        client = self.client()
        while len(self.acknowledged) < self.jobs:
            jid = uuid.uuid4().hex
            try:
                client.queues["work"].put("Job", {}, jid=jid)
                self.acknowledged.append(jid)
            except UNREACHABLE:
                client = self.client()

    def work(self, number):
        client = self.client()
        client.worker_name = "python-%d" % number
        while not self.stopping.is_set():
            try:
                job = client.queues["work"].pop()
                if job is None:
                    self.stopping.wait(0.01)
                    continue
                job.complete()
                self.completed.append(job.jid)
            except UNREACHABLE:
                client = self.client()
                client.worker_name = "python-%d" % number
            except QlessException:
                # The server had completed the job, or the lease has expired.
                self.refused += 1

    def work_in_ruby(self):
        """Starts workers in Ruby; returns them and the threads that read which jobs they have completed."""
        program = Path(__file__).with_name("worker.rb")
        command = ["ruby", program, "work", self.server.url, SCRIPT, "work"]
        workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(WORKERS)]

        def read(worker):
            for line in worker.stdout:
                self.completed.append(line.strip())
            worker.stdout.close()

        return workers, [threading.Thread(target=read, args=[worker]) for worker in workers]

    def run(self, worker):
        client = self.client()
        client.config["heartbeat"] = HEARTBEAT_S
        client.config["grace-period"] = 0
        programs, workers = [], []
        if worker != "python":
            programs, workers = self.work_in_ruby()
        if worker != "ruby":
            workers += [threading.Thread(target=self.work, args=[n]) for n in range(WORKERS)]
        putters = [threading.Thread(target=self.put) for _ in range(PUTTERS)]
        for thread in putters + workers:
            thread.start()
        try:
            for kill in range(1, self.kills + 1):
                share = self.jobs * kill // (self.kills + 1)
                until(lambda: len(self.acknowledged) >= share, PATIENCE_S)
                self.server = self.server.restarted()
            for putter in putters:
                putter.join()
            until(lambda: self.unfinished() == 0, PATIENCE_S)
        finally:
            self.stopping.set()
            for program in programs:
                program.kill()
                program.wait()
            for thread in workers:
                thread.join()

    def unfinished(self):
        """The number of acknowledged jobs that are not complete. A job that does not exist was lost."""
        client, count = self.client(), 0
        for start in range(0, len(self.acknowledged), 500):
            part = self.acknowledged[start:start + 500]
            jobs = client.jobs.get(*part)
            if len(jobs) != len(part):
                raise AssertionError("%d jobs were lost" % (len(part) - len(jobs)))
            count += sum(job.state != "complete" for job in jobs)
        return count


def crash(database, jobs, kills, worker):
    """Returns what happened. Raises an error if a job was lost or completed twice."""
    run = Crash(Server(database), jobs, kills)
    try:
        run.run(worker)
    finally:
        run.server.kill()
    twice = [jid for jid, count in Counter(run.completed).items() if count > 1]
    if twice:
        raise AssertionError("%d jobs were completed twice" % len(twice))
    return run


def database_in(folder):
    postgres = os.environ.get("SWITCHYARD_TEST_POSTGRES")
    if not postgres:
        return "sqlite://%s/jobs.db" % folder
    name = "crash_" + uuid.uuid4().hex
    subprocess.run(["psql", "-q", postgres.rstrip("/") + "/postgres", "-c", "CREATE DATABASE " + name], check=True)
    return postgres.rstrip("/") + "/" + name


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=8)
    parser.add_argument("--worker", choices=["python", "ruby", "both"], default="both")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        run = crash(database_in(folder), options.jobs, options.kills, options.worker)
    print(
        "%d jobs acknowledged and complete, %d kills, %d completions whose reply was lost or whose lease had expired, %.0f s"
        % (len(run.acknowledged), options.kills, run.refused, time.monotonic() - start)
    )


if __name__ == "__main__":
    sys.exit(main())
