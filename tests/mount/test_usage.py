# SPDX-License-Identifier: MIT
"""What jobs use, and how long they may run and stay: usage, time_limit, ttl."""

import contextlib
import datetime
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest
import records
import yaml
from harness import FINAL, ROOT, Job, alive, app, err_of, kill, popen, python_app, rmdir, run, sh_role, wait_for
from metrics import Metrics

# --- Usage ------------------------------------------------------------------------------------
# `usage` shows the resources that a local job was given and those that it has used, while it runs and afterwards, even
# after crashes of kxfs.

MIB = 1 << 20
KEYS = {
    "elapsed_seconds": None,
    "cpu": ["requested_millicores", "seconds", "now_millicores", "efficiency_percent"],
    "memory": ["requested_bytes", "limit_bytes", "now_bytes", "peak_bytes", "kind"],
    "gpu": ["requested"],
    "source": None, "samples": None, "first": None, "last": None,
}
# `hold N` starts a process that uses N MiB until the file `go` exists. It prints `held` when it uses them all.
HOLD = """
hold() {
    { head -c $(($1 * 1048576)) /dev/zero; echo held >&2; while [ ! -e go ]; do sleep 0.05; done; } | tail -n 1 > /dev/null &
}
"""
# A program that uses about as much CPU time as requested, in seconds, and prints the exact time.
BURN = """
import os, sys, time
while time.process_time() < float(sys.argv[1] if len(sys.argv) > 1 else SECONDS):
    pass
times = os.times()
print("used", times.user + times.system)
"""


def usage(job, *names, top=None):
    """Return the contents of a `usage` file. Times are texts."""
    text = (top or job.dir).joinpath(*names, "usage").read_text()
    tree = yaml.load(text, yaml.BaseLoader)
    assert list(tree) == list(KEYS), text

    def number(value):
        return None if value == "null" else int(value) if re.fullmatch(r"\d+", value) else value

    for key, parts in KEYS.items():
        if parts:
            assert list(tree[key]) == parts, text
            tree[key] = {k: number(v) for k, v in tree[key].items()}
        else:
            tree[key] = number(tree[key])
    return tree


def seen(job, check, *names):
    """Wait until CHECK is true for the usage of JOB, and return the usage."""
    return wait_for(lambda: (u := usage(job, *names)) and check(u) and u, what=f"the usage of {job}")


def go(kx):
    (kx.work / "go").touch()


def lines(kx, job, where="history"):
    return [one for line in kx.read(*([where] if where else []), "list.jsonl").splitlines()
            if (one := json.loads(line))["id"] == job.id]


def burned(job, replica="main-0"):
    """Return the CPU time that the program itself has measured."""
    return float(re.search(r"^used (\S+)$", job.log(replica).decode(), re.M)[1])


def test_two_at_once(kx):
    """Two children that use 120 MiB each at the same time count as 240 MiB, not as 120. After their end the usage is
    0."""
    job = kx.submit(app(HOLD + "hold 120; hold 120; wait", resource={"cpu": 2, "memMB": 1000, "gpu": 0}))
    used = seen(job, lambda u: (u["memory"]["now_bytes"] or 0) >= 240 * MIB)
    assert used["memory"]["now_bytes"] < 262 * MIB and used["memory"]["kind"] == "resident"
    assert used["memory"]["requested_bytes"] == 1_000_000_000 and used["memory"]["limit_bytes"] is None
    assert used["cpu"]["requested_millicores"] == 2000 and used["gpu"] == {"requested": 0}
    go(kx)
    job.finish()
    used = usage(job)
    assert 240 * MIB <= used["memory"]["peak_bytes"] < 262 * MIB and used["memory"]["now_bytes"] == 0
    assert used["source"] == "rusage+proc" and used["samples"] >= 1 and used["first"] <= used["last"]
    # All files show the same values, also in history/.
    assert job.status()["usage"] == used
    replica = usage(job, "main-0")
    # The job ends a moment after its only replica, possibly in the next second.
    assert 0 <= replica["elapsed_seconds"] <= used["elapsed_seconds"]
    assert replica["cpu"]["seconds"] == used["cpu"]["seconds"]
    assert [{**u, "elapsed_seconds": None, "cpu": None} for u in (replica, used)] == \
        [{**used, "elapsed_seconds": None, "cpu": None}] * 2
    assert [one["usage"] for one in lines(kx, job, None)] == [used]
    rmdir(job.dir)
    assert usage(job, top=job.old) == used == json.loads((job.old / "status.json").read_text())["usage"]
    assert [one["usage"] for one in lines(kx, job)] == [used]
    kx.restart()
    assert usage(job, top=job.old) == used and usage(job, "main-0", top=job.old) == replica


def test_cpu(kx):
    """The CPU time is what the program itself measures, including its children. While the program runs, `usage`
    shows the current value."""
    script = f"SECONDS = 4\n{BURN}\nif os.fork() == 0:\n    time.sleep(0)\n    os.execvp('python3', ['python3', '-c', " \
             f"{BURN!r}, '3'])\nos.wait()\n"
    job = kx.submit(python_app(script, resource={"cpu": 2, "memMB": 100, "gpu": 0}))
    used = seen(job, lambda u: (u["cpu"]["now_millicores"] or 0) > 0)
    assert used["cpu"]["now_millicores"] < 1500
    job.finish()
    told = sum(float(word) for word in re.findall(r"^used (\S+)$", job.log().decode(), re.M))
    used = usage(job)
    assert told > 6 and told - 1 <= used["cpu"]["seconds"] <= told + 2
    status = job.status()
    assert used["cpu"]["now_millicores"] == 0
    # The last sample may be a second old when the program ends. The record has the exact CPU time
    # up to the end.
    record = records.head_of(records.of(kx, job.id))
    assert told - 0.05 <= record["snapshot"]["replicas"][0]["usage"]["cpu_us"] / 1e6 <= told + 1
    elapsed = used["elapsed_seconds"]
    assert elapsed * 2 * used["cpu"]["efficiency_percent"] / 100 <= used["cpu"]["seconds"] + 2
    assert (elapsed + 2) * 2 * (used["cpu"]["efficiency_percent"] + 1) / 100 >= used["cpu"]["seconds"] - 2
    assert status["usage"] == used


def test_short(kx):
    """A program that ends before the first sample has its CPU time, but no guessed values."""
    job = kx.submit(app("true"))
    job.finish()
    used = usage(job)
    assert used["cpu"]["seconds"] == 0 and used["source"] == "rusage+proc" and used["elapsed_seconds"] >= 0
    assert used["cpu"]["requested_millicores"] is None and used["memory"]["requested_bytes"] is None
    assert (used["memory"]["peak_bytes"] or 0) < 64 * MIB


def test_not_started(kx):
    job = kx.submit(json.dumps({"name": "a", "roles": [{"name": "main", "image": "i", "entrypoint": "/nonexistent"}]}))
    job.finish("FAILED")
    used = usage(job)
    assert used["cpu"]["seconds"] is None and used["source"] is None and used["samples"] is None


def test_replicas(kx):
    """`usage` of the job is the sum over the replicas of all roles. Each replica has its own, too."""
    roles = [sh_role(HOLD + "hold 60; wait", "a", num_replicas=2, resource={"cpu": 1, "memMB": 200, "gpu": 0}),
             sh_role(HOLD + "hold 30; wait", "b", resource={"cpu": 0.5, "memMB": 100, "gpu": 0})]
    job = kx.submit(app("", roles=roles))
    used = seen(job, lambda u: (u["memory"]["now_bytes"] or 0) >= 150 * MIB)
    assert used["memory"]["now_bytes"] < 180 * MIB
    assert used["cpu"]["requested_millicores"] == 2500 and used["memory"]["requested_bytes"] == 500_000_000
    assert 60 * MIB <= usage(job, "a-1")["memory"]["peak_bytes"] < 75 * MIB
    assert 30 * MIB <= usage(job, "b-0")["memory"]["peak_bytes"] < 45 * MIB
    assert usage(job, "b-0")["cpu"]["requested_millicores"] == 500
    go(kx)
    job.finish()
    parts = [usage(job, name) for name in ("a-0", "a-1", "b-0")]
    assert usage(job)["memory"]["peak_bytes"] == sum(part["memory"]["peak_bytes"] for part in parts)
    assert usage(job)["samples"] == sum(part["samples"] for part in parts)


def test_retries(kx):
    """`usage` shows the newest attempt, as `status` does."""
    job = kx.submit(app(HOLD + """
if [ ! -e first ]; then touch first; hold 100; while [ ! -e go ]; do sleep 0.05; done; exit 1; fi
while [ ! -e end ]; do sleep 0.05; done
""", max_retries=1))
    seen(job, lambda u: (u["memory"]["now_bytes"] or 0) >= 100 * MIB)
    go(kx)
    wait_for(lambda: job.replica()["attempt"] == 1, what="the second attempt")
    seen(job, lambda u: 0 < (u["memory"]["peak_bytes"] or 0) < 64 * MIB)
    (kx.work / "end").touch()
    job.finish()
    assert usage(job)["memory"]["peak_bytes"] < 64 * MIB


@pytest.mark.parametrize("ends", ["later", "meanwhile"])
def test_crash(kx, ends):
    """After kill -9 of kxfs, the next mount knows the usage from before the kill and from the time without kxfs."""
    job = kx.submit(app(HOLD + f"""
hold 100
while [ ! -e go ]; do sleep 0.05; done
python3 -c 'SECONDS = 3{BURN}'
while [ ! -e end ]; do sleep 0.05; done
"""))
    before = seen(job, lambda u: (u["memory"]["now_bytes"] or 0) >= 100 * MIB)
    kx.end(signal.SIGKILL)
    go(kx)
    log = kx.folder(job.id) / "logs/main-0.0"
    wait_for(lambda: b"used" in log.read_bytes(), what="the loop")
    if ends == "meanwhile":
        (kx.work / "end").touch()
        wait_for(lambda: not kx.helpers(), what="the end of the helper")
    kx.start()
    if ends == "later":
        used = seen(job, lambda u: (u["cpu"]["seconds"] or 0) >= 2)
        assert used["memory"]["peak_bytes"] >= before["memory"]["peak_bytes"] and used["memory"]["now_bytes"] < 64 * MIB
        assert used["samples"] > before["samples"] and used["first"] == before["first"]
        (kx.work / "end").touch()
    job.finish()
    used = usage(job)
    told = burned(job)
    assert told - 1 <= used["cpu"]["seconds"] <= told + 2
    assert used["memory"]["peak_bytes"] >= 100 * MIB and used["first"] == before["first"]


def test_helper_killed(kx):
    """If the helper is killed, `usage` keeps its last sample."""
    job = kx.submit(app(HOLD + "hold 50; wait"))
    seen(job, lambda u: (u["memory"]["now_bytes"] or 0) >= 50 * MIB)
    for pid in kx.helpers():
        kill(pid)
    job.finish("FAILED")
    used = usage(job)
    assert used["memory"]["peak_bytes"] >= 50 * MIB and used["memory"]["now_bytes"] == 0


@pytest.mark.parametrize("how", ["itself", "a child"])
def test_why(kx, how):
    """If SIGKILL has ended a program, `why` reports its largest memory sample."""
    end = "kill -KILL $$" if how == "itself" else "sh -c 'kill -KILL $$'; exit $?"
    job = kx.submit(app(HOLD + "hold 100; while [ ! -e go ]; do sleep 0.05; done; wait; " + end))
    seen(job, lambda u: (u["memory"]["now_bytes"] or 0) >= 100 * MIB)
    go(kx)
    job.finish("FAILED")
    assert re.search(r"SIGKILL\), which the kernel also sends when memory runs out\. "
                     r"kxfs measured up to 1[01]\d(\.\d)? MiB of memory\. ", job.read("why")), job.read("why")


def test_slow_reader(kx):
    """A stopped kxfs delays no job. When it continues, it learns everything that has happened."""
    job = kx.submit(app(HOLD + "hold 40; wait; echo over"))
    seen(job, lambda u: (u["memory"]["now_bytes"] or 0) >= 40 * MIB)
    log = kx.folder(job.id) / "logs/main-0.0"
    os.kill(kx.pid, signal.SIGSTOP)
    try:
        time.sleep(3)  # time for some samples
        go(kx)
        wait_for(lambda: b"over" in log.read_bytes(), what="the end of the program")
        wait_for(lambda: not kx.helpers(), what="the end of the helper")
    finally:
        os.kill(kx.pid, signal.SIGCONT)
    job.finish()
    assert usage(job)["memory"]["peak_bytes"] >= 40 * MIB


def test_changes(kx):
    """A new usage does not count as a change of the job."""
    job = kx.submit(app("exec sleep 1000"))
    job.until("RUNNING")
    before = os.stat(job.dir).st_mtime_ns
    first = seen(job, lambda u: u["samples"])
    seen(job, lambda u: u["samples"] > first["samples"] + 1)
    assert os.stat(job.dir).st_mtime_ns == before
    rmdir(job.dir)


def test_example(kx):
    """contrib/examples/efficiency prints what Slurm's seff prints."""
    assert shutil.which("jq", path="/usr/bin:/bin")
    job = kx.submit(app(HOLD + "hold 100; wait", resource={"cpu": 2, "memMB": 1048.576, "gpu": 0}))
    seen(job, lambda u: (u["memory"]["now_bytes"] or 0) >= 100 * MIB)
    script = ROOT / "contrib/examples/efficiency"
    assert "State: RUNNING\n" in run([script, job / "status.json"]).stdout
    go(kx)
    job.finish()
    said = run([script, job / "status.json"]).stdout
    assert re.fullmatch(rf"""Job ID: {job.id}
State: SUCCEEDED \(exit code 0\)
Cores: 2
CPU Utilized: 00:00:0\d
CPU Efficiency: \d+% of \d\d:\d\d:\d\d core-walltime
Job Wall-clock time: \d\d:\d\d:\d\d
Memory Utilized: 1[01]\d\.?\d* MiB
Memory Efficiency: 1\d% of 1000 MiB
""", said), said
    never = pathlib.Path(kx.base / "never.json")
    status = job.status()
    status["usage"] = {**status["usage"], "cpu": {}, "memory": {}, "elapsed_seconds": None}
    never.write_text(json.dumps(status))
    assert run([script, never]).stdout.count("unknown") == 8


# --- Limits of time ---------------------------------------------------------------------------
# time_limit and ttl of local jobs. Jobs that run longer than time_limit are ended, even while no kxfs runs. Finished
# jobs leave jobs/ automatically after their ttl.

SLEEP = "echo $$; exec sleep 10000"


def limited(script, args=None, **fields):
    """Return an AppDef with the run options ARGS."""
    return json.dumps({**json.loads(app(script, **fields)), "scheduler_args": args or {}}, indent=1)


# Time limits, in seconds. A test must do something before its limit; on a busy machine, it retries with the next limit.
TRIES = (3, 15, 60)


def time_of(text):
    return datetime.datetime.fromisoformat(text).timestamp()


def exceeded(job, limit, more=""):
    """Check that all files report that JOB has exceeded LIMIT."""
    job.finish("FAILED")
    status, main = job.status(), job.replica()
    assert (status["reason"], main["reason"]) == ("DeadlineExceeded", "DeadlineExceeded")
    assert status["message"] == f"main-0: ran longer than its time limit of {limit}"
    assert job.read("why").startswith(f"main-0 ran longer than its time limit of {limit}. {more}")
    assert re.search(r"^deadline: null$", job.read("status"), re.MULTILINE)


def caught(kx, script, extra=0):
    """Return a job that has exceeded its limit after SCRIPT had set its trap and printed a line."""
    for limit in TRIES:
        job = kx.submit(limited(script, {"time_limit": f"{limit}s"}))
        exceeded(job, f"{limit}s" if limit < 60 else "1m")
        if job.log():
            assert time_of(job.status()["finished"]) - time_of(job.status()["started"]) >= limit + extra - 1
            return job
    raise AssertionError("no shell starts in a minute")


def test_time_limit(kx):
    """SIGTERM goes to the whole process group. The program's own exit code is ignored."""
    job = caught(kx, 'trap "echo bye; exit 0" TERM; echo $$; while :; do sleep 0.1; done')
    assert b"bye\n" in job.log() and not alive(job.pid())
    assert (job.replica()["exit_code"], job.replica()["signal"]) == (0, None)
    assert "There was no retry, because max_retries is 0." in job.read("why")


def test_deaf_program(make_kx):
    """If a program ignores SIGTERM, SIGKILL follows after the grace period."""
    kx = make_kx("grace=2s")
    job = caught(kx, 'trap "" TERM; echo $$; while :; do sleep 0.1; done', extra=2)
    assert job.replica()["signal"] == 9 and not alive(job.pid())


def test_option_of_the_mount(make_kx):
    """The option of the mount applies to all jobs that don't have their own limit. A stopped program is ended too."""
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
    """A running job shows its limit and when it will be reached. During a crash of kxfs, the time continues to
    count."""
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
    """The limit also applies while no kxfs runs, after kill -9 or an unmount. The next mount reports why the job has
    ended."""
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
    """Each attempt has the full time. The retry policy treats the timeout like any other failure."""
    job = kx.submit(limited(SLEEP, {"time_limit": "1s"}, max_retries=1, retry_policy="REPLICA"))
    exceeded(job, "1s", "Retries used: 1; max_retries is 1.")
    assert (job / "main-0" / "log.0").exists() and job.replica()["attempt"] == 1


def launched(kx, name, text):
    """Submit TEXT as submit/NAME and return its job, which may already be in history/."""
    kx.write(f"submit/{name}", text)
    return Job(kx, os.path.basename(os.readlink(kx / f"submit/{name}.job")))


def test_ttl(make_kx):
    """After its ttl, a finished job moves to history/ automatically, with its output. Other jobs remain."""
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
    """The script in the manual works for a job that moves to history/ before or while its `wait` is read."""
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
    """Return the place of JOB if it has ended: "jobs" or "history". Otherwise return ""."""
    with contextlib.suppress(FileNotFoundError):
        return "jobs" if job.state() in FINAL else ""
    return "history" if job.old.exists() else ""


def test_ttl_over_a_start(make_kx):
    """The ttl continues to count while no kxfs runs. The next mount keeps the ttl of earlier jobs; its own options
    apply only to new jobs."""
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
