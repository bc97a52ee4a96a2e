"""Starts the server program that SWITCHYARD names, and waits for conditions."""

import os
import subprocess
import threading
import time

# A guard against hanging; no test waits this long.
PATIENCE_S = 60


def until(condition, patience_s=PATIENCE_S):
    """Waits until the condition is true, and returns its value."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError("timed out")


class Server:
    """Serves until it is killed. `port` is that of the listener for the Redis protocol, `more` are further arguments."""

    def __init__(self, database, port=0, more=()):
        self.database = database
        self.more = more
        self.process = subprocess.Popen(
            [
                os.environ["SWITCHYARD"], "serve", "--listen", "127.0.0.1:0",
                "--redis-listen", "127.0.0.1:%d" % port, "--database", database, *more,
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        for line in self.process.stdout:
            if "http://" in line and not hasattr(self, "http"):
                self.http = "http://" + line.split("http://")[1].split()[0].split("/")[0]
            if "redis://" in line:
                self.url = line.split()[1]
                self.port = int(self.url.rsplit(":", 1)[1])
                break
        else:
            raise AssertionError("the server did not start")
        # Reads the rest, so that the pipe does not fill up.
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def restarted(self):
        """Kills the server without warning. Returns its successor, which has the same address."""
        self.kill()
        return Server(self.database, self.port, self.more)
