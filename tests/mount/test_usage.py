# SPDX-License-Identifier: MIT
"""`usage`: resources that a local job was given and has used, while it runs and afterwards, also over crashes of
kxfs."""

import json
import os
import pathlib
import re
import shutil
import signal
import time

import pytest
import yaml
import records
from harness import ROOT, app, kill, python_app, rmdir, run, sh_role, wait_for

MIB = 1 << 20
KEYS = {
    "elapsed_seconds": None,
    "cpu": ["requested_millicores", "seconds", "now_millicores", "efficiency_percent"],
    "memory": ["requested_bytes", "limit_bytes", "now_bytes", "peak_bytes", "kind"],
    "gpu": ["requested"],
    "source": None, "samples": None, "first": None, "last": None,
}
# `hold N`: a process that keeps N MiB until the file `go` exists. It has read them all when `held` is printed.
HOLD = """
hold() {
    { head -c $(($1 * 1048576)) /dev/zero; echo held >&2; while [ ! -e go ]; do sleep 0.05; done; } | tail -n 1 > /dev/null &
}
"""
# Uses about as many seconds of CPU time as requested, and prints the exact number.
BURN = """
import os, sys, time
while time.process_time() < float(sys.argv[1] if len(sys.argv) > 1 else SECONDS):
    pass
times = os.times()
print("used", times.user + times.system)
"""


def usage(job, *names, top=None):
    """Return the file's contents; times are texts."""
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
    """Wait until CHECK is true of its usage."""
    return wait_for(lambda: (u := usage(job, *names)) and check(u) and u, what=f"the usage of {job}")


def go(kx):
    (kx.work / "go").touch()


def lines(kx, job, where="history"):
    return [one for line in kx.read(*([where] if where else []), "list.jsonl").splitlines()
            if (one := json.loads(line))["id"] == job.id]


def burned(job, replica="main-0"):
    """Return the program's own measurement."""
    return float(re.search(r"^used (\S+)$", job.log(replica).decode(), re.M)[1])


def test_two_at_once(kx):
    """Two children of 120 MiB at the same time are 240, not the 120 of the largest; and 0 after their end."""
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
    # All files show the same, also in history/.
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
    """As much as the program itself measures, including its children; and the present usage, while it runs."""
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
    # More than the last sample, which may be a second old at the end.
    record = records.head_of(records.of(kx, job.id))
    assert told - 0.05 <= record["snapshot"]["replicas"][0]["usage"]["cpu_us"] / 1e6 <= told + 1
    elapsed = used["elapsed_seconds"]
    assert elapsed * 2 * used["cpu"]["efficiency_percent"] / 100 <= used["cpu"]["seconds"] + 2
    assert (elapsed + 2) * 2 * (used["cpu"]["efficiency_percent"] + 1) / 100 >= used["cpu"]["seconds"] - 2
    assert status["usage"] == used


def test_short(kx):
    """A program that ends before the first sample has its CPU time, and no guessed values."""
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
    """The sum over replicas of several roles, each with its own."""
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
    """It shows the newest attempt, as status does."""
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
    """kill -9 of kxfs: the next mount knows the usage before and meanwhile."""
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
    """The last sample remains."""
    job = kx.submit(app(HOLD + "hold 50; wait"))
    seen(job, lambda u: (u["memory"]["now_bytes"] or 0) >= 50 * MIB)
    for pid in kx.helpers():
        kill(pid)
    job.finish("FAILED")
    used = usage(job)
    assert used["memory"]["peak_bytes"] >= 50 * MIB and used["memory"]["now_bytes"] == 0


@pytest.mark.parametrize("how", ["itself", "a child"])
def test_why(kx, how):
    """For a program that SIGKILL has ended, `why` reports its largest sample of memory."""
    end = "kill -KILL $$" if how == "itself" else "sh -c 'kill -KILL $$'; exit $?"
    job = kx.submit(app(HOLD + "hold 100; while [ ! -e go ]; do sleep 0.05; done; wait; " + end))
    seen(job, lambda u: (u["memory"]["now_bytes"] or 0) >= 100 * MIB)
    go(kx)
    job.finish("FAILED")
    assert re.search(r"SIGKILL\), which the kernel also sends when memory runs out\. "
                     r"kxfs measured up to 1[01]\d(\.\d)? MiB of memory\. ", job.read("why")), job.read("why")


def test_slow_reader(kx):
    """A stopped kxfs delays no job, and learns everything later."""
    job = kx.submit(app(HOLD + "hold 40; wait; echo over"))
    seen(job, lambda u: (u["memory"]["now_bytes"] or 0) >= 40 * MIB)
    log = kx.folder(job.id) / "logs/main-0.0"
    os.kill(kx.pid, signal.SIGSTOP)
    try:
        time.sleep(3)  # some looks
        go(kx)
        wait_for(lambda: b"over" in log.read_bytes(), what="the end of the program")
        wait_for(lambda: not kx.helpers(), what="the end of the helper")
    finally:
        os.kill(kx.pid, signal.SIGCONT)
    job.finish()
    assert usage(job)["memory"]["peak_bytes"] >= 40 * MIB


def test_changes(kx):
    """Usage does not count as a change of the job."""
    job = kx.submit(app("exec sleep 1000"))
    job.until("RUNNING")
    before = os.stat(job.dir).st_mtime_ns
    first = seen(job, lambda u: u["samples"])
    seen(job, lambda u: u["samples"] > first["samples"] + 1)
    assert os.stat(job.dir).st_mtime_ns == before
    rmdir(job.dir)


def test_example(kx):
    """contrib/examples/efficiency, as seff prints it."""
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
