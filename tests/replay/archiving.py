# SPDX-License-Identifier: MIT
"""A directory that is an archive, the captures that fill it, and its contents."""

import json
import signal
import subprocess

import harness
import store as st
import watching
from harness import wait_for

FILES = {"uid", "state", "status", "status.json", "why", "manifest.yaml", "log"}  # each job has them


class Capture:
    """kxfs capture with an archive, on a state directory of its own."""

    def __init__(self, kx, directory):
        self.kx = kx
        self.dir = directory
        self.state = kx.state
        self.proc = None

    def start(self, *options):
        options = [f"state={self.state}", f"archive={self.dir}", *options]
        with open(self.kx.messages, "ab") as err:
            self.proc = subprocess.Popen([self.kx.binary, "capture", "-o", ",".join(options), "volcano:test"], stdout=err,
                                         stderr=err, stdin=subprocess.DEVNULL, env=self.kx.env())

    def up(self, *options):
        ready = self.state / "ready"
        ready.unlink(missing_ok=True)  # what was killed has left it
        self.start(*options)
        wait_for(lambda: ready.exists() or self.proc.poll() is not None, what=self.kx.said)
        assert self.proc.poll() is None, self.kx.said()

    def end(self, sig=signal.SIGTERM):
        proc, self.proc = self.proc, None
        proc.send_signal(sig)
        assert proc.wait(harness.LIMIT) == (-sig if sig == signal.SIGKILL else 0), self.kx.said()

    def fails(self):
        """The start fails; return the message."""
        self.start()
        assert self.proc.wait(harness.LIMIT) == 1
        self.proc = None
        return self.kx.said()

    def metric(self, name):
        path = self.state / "metrics"
        text = path.read_text() if path.exists() else ""
        return next((int(line.split()[1]) for line in text.splitlines() if line.startswith(f"kxfs_{name} ")), None)


class Archive:
    """Return the contents of the directory."""

    def __init__(self, directory, namespace="test"):
        self.dir = directory
        self.top = directory / namespace

    def folder(self, job):
        """Return the directory of JOB, once it exists; it is complete then."""
        found = list(self.top.glob(f"????-??-??/{job}"))
        if not found:
            return None
        assert len(found) == 1 and FILES - {"log"} <= {path.name for path in found[0].iterdir()}, list(found[0].iterdir())
        return found[0]

    def has(self, job, what=None):
        return wait_for(lambda: self.folder(job), what=what or f"{job} in the archive")

    def log(self, job, name="main-0/log"):
        return (self.folder(job) / name).read_bytes()

    def state(self, job):
        return (self.folder(job) / "state").read_text().strip()

    def status(self, job):
        return json.loads((self.folder(job) / "status.json").read_text())

    def jobs(self):
        return sorted(path.name for path in self.top.glob("????-??-??/[!.]*"))

    def temporary(self):
        return [path.name for path in self.dir.rglob(".*") if path.name != ".kxfs-archive"]


def print_and_end(server, volcano, job, text, **how):
    """Let JOB print TEXT and end."""
    server.store.add(st.JOBS, watching.job(job))
    (pod,) = volcano.start(job)
    volcano.log(pod).append(text)
    volcano.finish(pod, **how)
