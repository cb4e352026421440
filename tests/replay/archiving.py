# SPDX-License-Identifier: MIT
"""An archive, the captures that fill it, and what stands in it."""

import json
import signal
import subprocess

import harness
import store as st
import watching
from harness import wait_for


class Archive:
    """Captures with an archive, one after the other, and what stands in that."""

    def __init__(self, kx, dir, place=None, *options):
        self.kx = kx
        self.dir = dir
        self.place = place or str(dir)
        self.options = [f"archive={self.place}", *options]
        self.state = kx.state
        self.proc = None
        dir.mkdir()

    def start(self, *options):
        options = [f"state={self.state}", *self.options, *options]
        with open(self.kx.messages, "ab") as err:
            self.proc = subprocess.Popen([self.kx.binary, "capture", "-o", ",".join(options), "volcano:test"], stdout=err,
                                         stderr=err, stdin=subprocess.DEVNULL, env=self.kx.env())

    def up(self, *options):
        ready = self.state / "ready"
        ready.unlink(missing_ok=True)  # what was killed has left it
        self.start(*options)
        wait_for(lambda: ready.exists() or self.proc.poll() is not None, what=self.kx.said)
        assert self.proc.poll() is None, self.kx.said()

    def end(self, sig=signal.SIGTERM, status=None):
        proc, self.proc = self.proc, None
        proc.send_signal(sig)
        want = status if status is not None else -sig if sig == signal.SIGKILL else 0
        assert proc.wait(harness.LIMIT) == want, self.kx.said()

    def folder(self, job):
        found = list(self.dir.glob(f"test/????-??-??/{job}"))
        return found[0] if found else self.dir / "none"

    def read(self, job, name):
        path = self.folder(job) / name
        return path.read_text() if path.exists() else None

    def log(self, job, name="main-0/log.0"):
        """As `cat ROLE-K/log.0/*` gives it."""
        return b"".join(part.read_bytes() for part in sorted((self.folder(job) / name).glob("[!.]*")))

    def status(self, job):
        text = self.read(job, "status.json")
        return json.loads(text) if text else {}

    def lines(self):
        """Those of all lists, by job."""
        found = [json.loads(line) for path in self.dir.glob("test/*/list*.jsonl") for line in path.read_text().splitlines()]
        assert len({line["uid"] for line in found}) == len(found)
        return {line["id"]: line for line in found}

    def metric(self, name):
        path = self.state / "metrics"
        text = path.read_text() if path.exists() else ""
        return next((int(line.split()[1]) for line in text.splitlines() if line.startswith(f"kxfs_{name} ")), None)


def finish(server, volcano, archive, job, text, **how):
    """JOB prints TEXT, ends, and is removed with its pods when that was seen."""
    server.store.add(st.JOBS, watching.job(job))
    (pod,) = volcano.start(job)
    volcano.log(pod).append(text)
    volcano.finish(pod, **how)
    wait_for(lambda: archive.status(job).get("state") in harness.FINAL, what=f"the end of {job}")
    server.store.remove(st.JOBS, "test", job)
