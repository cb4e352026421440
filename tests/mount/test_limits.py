# SPDX-License-Identifier: MIT
"""time_limit and ttl of local jobs: jobs that run too long are ended, even while no kxfs runs, and finished jobs
leave jobs/ automatically."""

import contextlib
import datetime
import json
import os
import re
import signal
import subprocess
import time

import pytest
import yaml
from harness import FINAL, Job, alive, app, err_of, popen, run, wait_for
from metrics import Metrics

SLEEP = "echo $$; exec sleep 10000"


def limited(script, args=None, **fields):
    """Return an AppDef whose job has run options."""
    return json.dumps({**json.loads(app(script, **fields)), "scheduler_args": args or {}}, indent=1)


# Time limits in seconds that a test must beat; on a busy machine it retries with the next one.
TRIES = (3, 15, 60)


def time_of(text):
    return datetime.datetime.fromisoformat(text).timestamp()


def pid_of(job):
    wait_for(lambda: job.log().endswith(b"\n"), what="the pid")
    return int(job.log().split()[0])


def exceeded(job, limit, more=""):
    """All files report its end correctly."""
    job.finish("FAILED")
    status, main = job.status(), job.replica()
    assert (status["reason"], main["reason"]) == ("DeadlineExceeded", "DeadlineExceeded")
    assert status["message"] == f"main-0: ran longer than its limit of {limit}"
    assert job.read("why").startswith(f"main-0 ran longer than its limit of {limit}. {more}")
    assert re.search(r"^deadline: null$", job.read("status"), re.MULTILINE)


def caught(kx, script, extra=0):
    """Return a job that exceeded its limit after SCRIPT had set its trap and printed a line."""
    for limit in TRIES:
        job = kx.submit(limited(script, {"time_limit": f"{limit}s"}))
        exceeded(job, f"{limit}s" if limit < 60 else "1m")
        if job.log():
            assert time_of(job.status()["finished"]) - time_of(job.status()["started"]) >= limit + extra - 1
            return job
    raise AssertionError("no shell starts in a minute")


def test_time_limit(kx):
    """SIGTERM goes to the whole process group, and the program's own exit code does not count."""
    job = caught(kx, 'trap "echo bye; exit 0" TERM; echo $$; while :; do sleep 0.1; done')
    assert b"bye\n" in job.log() and not alive(pid_of(job))
    assert (job.replica()["exit_code"], job.replica()["signal"]) == (0, None)
    assert "It was not retried, because max_retries is 0." in job.read("why")


def test_deaf_program(make_kx):
    """SIGKILL follows after the grace."""
    kx = make_kx("grace=2s")
    job = caught(kx, 'trap "" TERM; echo $$; while :; do sleep 0.1; done', extra=2)
    assert job.replica()["signal"] == 9 and not alive(pid_of(job))


def test_option_of_the_mount(make_kx):
    """It applies to all jobs without their own limit; a stopped program is ended too."""
    kx = make_kx("time_limit=1s")
    stopped = kx.submit(app("echo $$; kill -STOP $$; echo more; sleep 10000"))
    own = kx.submit(limited("sleep 2; echo done", {"time_limit": None}))
    later = kx.submit(limited("sleep 2; echo done", {"time_limit": "1h"}))
    exceeded(stopped, "1s")
    assert stopped.replica()["signal"] == 15
    for job, limit in ((own, None), (later, 3600)):
        job.finish()
        assert job.log() == b"done\n" and job.status()["time_limit"] == limit


def test_limit_is_shown_beforehand(kx):
    """The limit and its time are shown, also over a crash, during which it continues to count."""
    job = kx.submit(limited(SLEEP, {"time_limit": "1h"}))
    job.until("RUNNING")
    for _ in range(2):
        status = job.status()
        replica = yaml.safe_load(job.read("main-0", "status"))
        assert status["time_limit"] == 3600 and status["deadline"]
        assert time_of(status["deadline"]) - time_of(status["started"]) == 3600
        assert f"\ndeadline: {status['deadline']}\n" in job.read("main-0", "status") and replica["deadline"]
        kx.restart(signal.SIGKILL)
        job.until("RUNNING")


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGTERM])
def test_no_kxfs(make_kx, sig):
    """The limit applies while no kxfs runs, after kill -9 and after an unmount, and the next mount reports why the
    job has ended."""
    kx = make_kx("linger")
    for limit in TRIES:
        job = kx.submit(limited(SLEEP, {"time_limit": f"{limit}s"}))
        wait_for(lambda job=job: job.log().endswith(b"\n") or job.state() == "FAILED", what="the pid")
        pid = int(job.log() or 0)
        kx.end(sig)
        seen = pid and alive(pid)
        wait_for(lambda pid=pid: not (pid and alive(pid)), what="the end of the program")
        kx.start()
        exceeded(job, f"{limit}s" if limit < 60 else "1m")
        assert time_of(job.status()["finished"]) - time_of(job.status()["started"]) >= limit - 1
        if seen:
            return
    raise AssertionError("kxfs was never quicker than the limit")


def test_each_attempt(kx):
    """Each attempt has the full time, and the retry policy treats the failure like any other."""
    job = kx.submit(limited(SLEEP, {"time_limit": "1s"}, max_retries=1, retry_policy="REPLICA"))
    exceeded(job, "1s", "Retries used: 1; max_retries is 1.")
    assert (job / "main-0" / "log.0").exists() and job.replica()["attempt"] == 1


def test_cancelled_is_cancelled(kx):
    """A cancel before the limit is the reported reason."""
    job = kx.submit(limited(SLEEP, {"time_limit": "1h"}))
    pid_of(job)
    job.cancel()
    wait_for(lambda: job.old.exists(), what="the history")
    assert (job.old / "state").read_text() == "CANCELLED\n"
    assert "limit" not in (job.old / "why").read_text()


def launched(kx, name, text):
    """Return the job of submit/NAME, which may be in history/ by now."""
    kx.write(f"submit/{name}", text)
    return Job(kx, os.path.basename(os.readlink(kx / f"submit/{name}.job")))


def test_ttl(make_kx):
    """A finished job moves to history/ automatically after its ttl, with its output; others remain."""
    kx = make_kx("ttl=1s")
    gone = launched(kx, "gone.yaml", app("echo out"))
    stays = kx.submit(limited("echo out", {"ttl": None}))
    long = kx.submit(limited("exit 3", {"ttl": "2d"}))
    stays.finish()
    long.finish("FAILED")
    wait_for(lambda: gone.id in kx.history(), what="the job to go to history/")
    assert (gone.old / "state").read_text() == "SUCCEEDED\n"
    assert (gone.old / "main-0" / "log").read_text() == "out\n"
    assert sorted(job.id for job in kx.jobs()) == sorted([stays.id, long.id])


def test_wait_after_ttl(make_kx):
    """The manual's script works for a job that moves to history/ before, or while, its `wait` is read."""
    kx = make_kx("ttl=0s")
    gone = launched(kx, "gone.yaml", app("echo out"))
    wait_for(lambda: gone.id in kx.history(), what="the job to go to history/")
    script = f"grep -qx SUCCEEDED {kx.mnt}/submit/%s.job/wait && tail -n 1 {kx.mnt}/submit/%s.job/log"
    assert run(script % (("gone.yaml",) * 2)).stdout == "main/0 out\n"
    job = launched(kx, "goes.yaml", app("while [ ! -e go ]; do sleep 0.02; done; echo end"))
    with popen(script % (("goes.yaml",) * 2), stdout=subprocess.PIPE) as p:
        wait_for(lambda: Metrics(kx)("parked_requests", kind="read") == 1, what="the script to wait")
        (kx.work / "go").touch()
        assert p.communicate(timeout=120)[0] == b"main/0 end\n"
    wait_for(lambda: job.id in kx.history(), what="the job to go to history/")


def where(job):
    """Return the directory of a finished job's; "" until then."""
    with contextlib.suppress(FileNotFoundError):
        return "jobs" if job.state() in FINAL else ""
    return "history" if job.old.exists() else ""


def test_ttl_over_a_start(make_kx):
    """The ttl continues while no kxfs runs, and the next mount, whose options only apply to its own jobs, respects
    it."""
    kx = make_kx()
    for ttl in TRIES:
        job = launched(kx, f"{ttl}.yaml", limited("exit 4", {"ttl": f"{ttl}s"}))
        here = wait_for(lambda job=job: where(job), what="the end of the job") == "jobs"
        kx.end(signal.SIGKILL)
        time.sleep(ttl)
        kx.start()
        wait_for(lambda job=job: job.id in kx.history(), what="the job to go to history/")
        assert (job.old / "state").read_text() == "FAILED\n" and kx.jobs() == []
        if here:
            return
    raise AssertionError("kxfs was never quicker than the ttl")


@pytest.mark.parametrize("name, value, why", [
    ("time_limit", "4", 'must be a time with its unit, like 90s, 30m, 4h or 2d, not "4"'),
    ("time_limit", 240, 'must be a time with its unit, like 90s, 30m, 4h or 2d, not "240"'),
    ("time_limit", "0s", "must be between 1s and 3650d"),
    ("ttl", "4000d", "must be between 0s and 3650d"),
    ("ttl", True, "must be a time, but is true; put it into quotes"),
])
def test_refused(kx, name, value, why):
    assert err_of(kx.write, "submit/x.yaml", limited("true", {name: value})) == "EINVAL"
    assert re.fullmatch(rf"x.yaml:\d+:\d+: scheduler_args.{name}: {re.escape(why)}\n", kx.read("submit", "x.yaml.error"))
    if isinstance(value, str):
        p = run([kx.binary, "-o", f"{name}={value}", "local:", str(kx.base)], check=False)
        assert p.returncode == 1 and f"-o {name}: {why}" in p.stderr, p.stderr
        assert not os.path.ismount(kx.base)
