# SPDX-License-Identifier: MIT
"""Local jobs run under helpers: a crash of kxfs ends none of them. Nothing that a job does to its parent, its session
or its environment reaches kxfs or another job, or outlives the job.

KXFS_TEST_CRASHES is how often test_many_crashes kills kxfs (default 10), with KXFS_TEST_CRASH_JOBS jobs (10)."""

import json
import os
import random
import signal
import threading
import time

import pytest
import records
from disk import started
from harness import Job, alive, app, err_of, kill, popen, remove, rmdir, run, wait_for, write_ctl

CRASHES = int(os.environ.get("KXFS_TEST_CRASHES", "10"))
JOBS = int(os.environ.get("KXFS_TEST_CRASH_JOBS", "10"))

# Prints its pid and that of a process in another session without its environment, and then waits.
FAMILY = """
echo $$
env -i setsid /bin/sh -c 'echo $$ > .pid; mv .pid pid; exec sleep 10000' &
while [ ! -e pid ]; do sleep 0.02; done
cat pid
"""
UNTIL_END = "while [ ! -e end ]; do sleep 0.02; done\n"


def pids_of(job, n=2):
    wait_for(lambda: len(job.log().split()) >= n, what="the pids")
    return [int(word) for word in job.log().split()[:n]]


def all_gone(kx, pids):
    wait_for(lambda: not any(alive(pid) for pid in pids), what="all that the job has started to end")
    wait_for(lambda: not [pid for pid in kx.helpers() if alive(pid)], what="the helpers to end")


# --- a crash --------------------------------------------------------------------------------------


def test_killed_before_the_start(make_kx):
    """A job that kxfs had recorded, but not started, when it was killed is in history/ after the next start."""
    with started(make_kx(start=False)) as (kx, disk):
        file = kx.base / "a.yaml"
        file.write_text(app("echo >> started"))
        disk.hang("mkdir", "/tasks")
        with popen(["cp", file, kx / "submit"]) as cp:
            try:
                wait_for(lambda: disk.hangs("/tasks"), what="the start of the helper")
            finally:
                kill(kx.pid)
                disk.go_on()
                kx.end(signal.SIGKILL)
            assert cp.wait(timeout=60) != 0
        (record,) = records.files(kx)
        kx.start()
        wait_for(kx.history, what="the job in history/")
        (job,) = (Job(kx, name) for name in kx.history())
        job.never("CANCELLED")
        assert os.readlink(kx / "submit/a.yaml.job") == f"../history/{job.id}" and kx.ls("submit") == ["a.yaml", "a.yaml.job"]
        status = json.loads((job.old / "status.json").read_text())
        assert kx.ls("jobs") == [] and status["reason"] == "NotLaunched"
        assert "nothing was launched" in (job.old / "why").read_text()
        wait_for(lambda: not os.listdir(kx.state / "output"), what="what was left to be removed")
        remove(job.old)
        wait_for(lambda: not record.exists(), what="the record to be removed")
        assert not (kx.work / "started").exists()


def test_jobs_run_on(kx):
    """Jobs continue over a crash, and so do their logs; `wait` and `follow` of the next mount end with them."""
    job = kx.submit(app(FAMILY + UNTIL_END + "echo last; exit 3"))
    pids = pids_of(job)
    kx.end(signal.SIGKILL)
    assert all(alive(pid) for pid in pids)
    kx.start()
    job.until("RUNNING")  # at once, if that was on record or the helper answers at once
    assert all(alive(pid) for pid in pids)
    got = {}
    threads = [threading.Thread(target=lambda name=name: got.update({name: job.read(name)}))
               for name in ("wait", "follow", "main-0/follow")]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    (kx.work / "end").touch()
    for thread in threads:
        thread.join(60)
    text = f"{pids[0]}\n{pids[1]}\nlast\n"
    assert got == {"wait": "FAILED\n", "main-0/follow": text,
                   "follow": "".join(f"main/0 {line}\n" for line in text.splitlines())}
    assert job.log().decode() == text
    assert (job.replica()["exit_code"], job.replica()["reason"]) == (3, "Error")
    all_gone(kx, pids)
    wait_for(lambda: not (kx.folder(job.id) / "tasks").exists(), what="its tasks/ to be gone")


@pytest.mark.parametrize("script, code, sig, state", [
    ("exit 0", 0, None, "SUCCEEDED"), ("exit 7", 7, None, "FAILED"), ("kill -TERM $$", None, 15, "FAILED")])
def test_ends_meanwhile(kx, script, code, sig, state):
    """The next start learns how a job ended while no daemon ran."""
    job = kx.submit(app(FAMILY + UNTIL_END + "echo last; " + script))
    pids = pids_of(job)
    kx.end(signal.SIGKILL)
    (kx.work / "end").touch()
    all_gone(kx, pids)
    ended = time.time()
    time.sleep(1.1)
    kx.start()
    job.finish(state)
    replica = job.replica()
    assert (replica["exit_code"], replica["signal"]) == (code, sig)
    assert job.log().decode() == f"{pids[0]}\n{pids[1]}\nlast\n"
    assert job.read("wait") == f"{state}\n"
    finished = run(f"date -u -d $(sed -n 's/^finished: //p' {job.dir}/main-0/status) +%s").stdout
    assert int(finished) <= ended


def test_retries_go_on(kx):
    """Each crash preserves the remaining retries, and each attempt keeps its log."""
    job = kx.submit(app("echo try $$; while [ ! -e go ]; do sleep 0.02; done; rm go; exit 1", max_retries=3))
    for attempt in range(4):
        job.until_logged(b"try ")
        wait_for(lambda n=attempt: job.replica()["attempt"] == n and job.state() == "RUNNING")
        job.until_logged(b"try ")
        pid = int(job.log().split()[1])
        kx.end(signal.SIGKILL)
        (kx.work / "go").touch()
        if attempt % 2:
            wait_for(lambda: not alive(pid))
        kx.start()
        if attempt < 3:
            wait_for(lambda n=attempt: job.replica()["attempt"] == n + 1)
    job.finish("FAILED")
    assert job.status()["retries"] == 3 and job.replica()["exit_code"] == 1
    for name in ("log", "log.0", "log.1", "log.2"):
        assert job.log(name=name).startswith(b"try ")


def test_cancel_and_ctl(make_kx):
    kx = make_kx("grace=60")
    removed, suspended, terminated, restarted = [
        kx.submit(app("echo $$; trap 'echo bye; exit 0' TERM; while :; do sleep 0.02; done", name=name))
        for name in ("removed", "suspended", "terminated", "restarted")]
    pids = {job.id: pids_of(job, 1)[0] for job in (removed, suspended, terminated, restarted)}
    write_ctl(suspended, "suspend")
    kx.end(signal.SIGKILL)
    kx.start()
    assert suspended.status()["phase"] == "Suspended"
    write_ctl(terminated, "terminate")
    write_ctl(restarted, "restart")
    rmdir(removed.dir)
    terminated.until("FAILED")
    wait_for(lambda: "phase: Cancelled" in (removed.old / "status").read_text())
    assert (removed.old / "main-0/log").read_text().endswith("bye\n") and not alive(pids[removed.id])
    assert terminated.log().endswith(b"bye\n") and not alive(pids[terminated.id])
    wait_for(lambda: restarted.replica()["attempt"] == 1 and restarted.log())
    assert not alive(pids[restarted.id]) and restarted.log(name="log.0").endswith(b"bye\n")
    assert alive(pids[suspended.id])
    write_ctl(suspended, "resume")
    wait_for(lambda: suspended.state() == "RUNNING")
    rmdir(suspended.dir)
    wait_for(lambda: not alive(pids[suspended.id]))


def test_crash_while_cancelling(make_kx):
    """Jobs that were being removed when kxfs was killed are removed."""
    kx = make_kx("grace=1")
    job = kx.submit(app(FAMILY + "trap '' TERM\n" + UNTIL_END))
    pids = pids_of(job)
    rmdir(job.dir)
    kx.end(signal.SIGKILL)
    kx.start()
    all_gone(kx, pids)
    wait_for(lambda: (job.old / "state").read_text() == "CANCELLED\n")
    wait_for(lambda: "phase: Cancelled" in (job.old / "status").read_text())


def test_removed_jobs_stay_removed(kx):
    """Finished jobs that were removed are in history/ after a crash too, with their times and states."""
    jobs = [kx.submit(app("true"), name=f"{i}.yaml") for i in range(5)]
    for job in jobs:
        job.finish()
    for job in jobs[:4]:
        remove(job.dir)
    gone = [kx / "history" / job.id for job in jobs[:4]]
    before = [(os.stat(path).st_mtime_ns, (path / "status").read_text()) for path in gone]
    kx.end(9)
    kx.start()
    assert kx.ls("jobs") == [jobs[4].id]
    assert [(os.stat(path).st_mtime_ns, (path / "status").read_text()) for path in gone] == before


def test_many_crashes(kx, pytestconfig):
    """kxfs is killed repeatedly at random: all jobs succeed, and their logs are exact. Half of the jobs fail once in
    the middle, and are retried."""
    seed = pytestconfig.getoption("--seed") or random.randrange(1 << 32)
    rng = random.Random(seed)
    print(f"seed {seed}, {CRASHES} kills")
    # Each attempt prints until it is stopped, and leaves the number of lines it has printed.
    script = ("end=end; [ $N = 0 ] || [ -e $KXFS_JOB.0 ] || end=middle; i=0; "
              "while [ ! -e $end ]; do echo line $i; i=$((i + 1)); sleep 0.05; done; "
              "[ $end = end ] || { echo $i > $KXFS_JOB.0; exit 1; }; echo $i > $KXFS_JOB.$N")
    jobs = [kx.submit(app(script, env={"N": str(i % 2)}, max_retries=i % 2)) for i in range(JOBS)]
    for n in range(CRASHES):
        if n == CRASHES // 2:
            (kx.work / "middle").touch()
        time.sleep(rng.choice((0, rng.uniform(0, 0.05), rng.uniform(0, 0.3))))
        kx.end(signal.SIGKILL)
        time.sleep(rng.choice((0, 0, 0, 0.1)))
        kx.start()
    (kx.work / "end").touch()
    for i, job in enumerate(jobs):
        job.finish(timeout=600)
        merged = ""
        for attempt, name in enumerate(("log.0", "log") if i % 2 else ("log",)):
            lines = [f"line {n}\n" for n in range(int((kx.work / f"{job.id}.{attempt}").read_text()))]
            assert job.log(name=name).decode() == "".join(lines)
            merged += "".join(f"main/0 {line}" for line in lines)
        assert job.read("log") == merged
        assert job.read("follow") == merged
    assert len(kx.ls("jobs")) == JOBS
    all_gone(kx, [])


def test_attempts_in_order(make_kx):
    """kxfs is killed while the end of an attempt is being written to the merged log: the next attempt follows it
    there."""
    with started(make_kx(start=False)) as (kx, disk):
        job = kx.submit(app("echo one; [ ! -e again ] || exit 0; while [ ! -e again ]; do sleep 0.02; done; echo two; exit 1",
                            max_retries=1))
        job.until_logged("one\n")
        wait_for(lambda: job.read("log") == "main/0 one\n", what="the merged log")
        logs = kx.base / "disk/output" / kx.folder(job.id).name / "logs"
        (first,) = os.listdir(logs)
        disk.hang("open", f"/{first}")
        (kx.work / "again").touch()
        record = records.of(kx, job.id)
        wait_for(lambda: records.head_of(record)["plan"]["replicas"][0]["ended"], what="the end of the attempt on record")
        wait_for(lambda: disk.hangs(f"/{first}"), what="the log to be read")
        kill(kx.pid)
        disk.go_on()  # a call on a mount that hangs is not ended by a signal
        kx.end(signal.SIGKILL)

        disk.hang("open", f"/{first}")
        kx.start()
        wait_for(lambda: disk.hangs(f"/{first}"), what="the log to be read again")
        end = time.monotonic() + 1  # the next attempt has time to print, if it begins now
        while time.monotonic() < end and not any(file.stat().st_size for file in logs.iterdir() if file.name != first):
            time.sleep(0.02)
        disk.go_on()
        job.finish()
        assert job.read("log") == "main/0 one\nmain/0 two\nmain/0 one\n"


# --- what a job does to its helper ---


@pytest.mark.parametrize("sig", ["TERM", "HUP", "INT", "USR1"])
def test_signal_to_the_parent(kx, sig):
    other = kx.submit(app("echo $$; exec sleep 10000"))
    job = kx.submit(app(f"echo up; kill -{sig} $PPID; kill -{sig} $(cut -d' ' -f4 /proc/$PPID/stat); sleep 0.2; echo down"))
    job.finish()
    assert job.log() == b"up\ndown\n"
    assert other.state() == "RUNNING" and alive(pids_of(other, 1)[0])


def test_kill_of_the_parent(kx):
    """That ends the replica and all its processes, and nothing else; and it is reported."""
    other = kx.submit(app("echo $$; exec sleep 10000", name="other"))
    job = kx.submit(app(FAMILY + "kill -9 $PPID\nexec sleep 10000"))
    pids = pids_of(job)
    job.finish("FAILED")
    wait_for(lambda: not any(alive(pid) for pid in pids))
    assert job.log().decode() == f"{pids[0]}\n{pids[1]}\n"
    assert job.replica()["reason"] == "HelperKilled"
    assert "helper process" in job.read("why") and "SIGKILL" in job.replica()["message"]
    assert other.state() == "RUNNING" and alive(pids_of(other, 1)[0])


def parent(pid):
    return int(run(f"cut -d' ' -f4 /proc/{pid}/stat").stdout)


@pytest.mark.parametrize("down", [False, True])
def test_kill_of_the_helper(kx, down):
    """The same if another process does it, and while no daemon runs."""
    job = kx.submit(app(FAMILY + "exec sleep 10000"))
    pids = pids_of(job)
    guard = parent(pids[0])
    helper = parent(guard)
    if down:
        kx.end(signal.SIGKILL)
    kill(helper)
    wait_for(lambda: not any(alive(pid) for pid in (*pids, guard)))
    if down:
        kx.start()
    job.finish("FAILED")
    assert job.replica()["reason"] == "HelperKilled"
    assert job.log().decode() == f"{pids[0]}\n{pids[1]}\n"


def test_kill_of_helper_and_guard(kx):
    """Both at the same time, and kxfs before, so that nothing is left to end the program: it ends anyway."""
    job = kx.submit(app("echo $$; exec sleep 10000"))
    [pid] = pids_of(job, 1)
    guard = parent(pid)
    helper = parent(guard)
    kx.end(signal.SIGKILL)
    os.kill(guard, signal.SIGSTOP)
    os.kill(helper, signal.SIGSTOP)
    kill(guard)
    kill(helper)
    wait_for(lambda: not alive(pid), what="the program to end")
    kx.start()
    job.finish("FAILED")
    assert job.replica()["reason"] == "HelperKilled"


def test_nothing_outlives_a_job(kx):
    """A process with another session, parent and environment ends with the job, also after a crash."""
    job = kx.submit(app(FAMILY + UNTIL_END))
    pids = pids_of(job)
    kx.restart(signal.SIGKILL)
    (kx.work / "end").touch()
    job.finish()
    all_gone(kx, pids)


# --- unmounting -----------------------------------------------------------------------------------


def test_unmount_ends_all(kx):
    job = kx.submit(app(FAMILY + "exec sleep 10000"))
    pids = pids_of(job)
    kx.restart(signal.SIGKILL)
    assert kx.end() == 0
    assert not any(alive(pid) for pid in pids)
    all_gone(kx, pids)
    kx.start()
    assert job.state() == "CANCELLED"


def test_unmount_waits_only_so_long(make_kx):
    """Processes that do not end are left to the next mount: here a stopped helper."""
    kx = make_kx("grace=1")
    job = kx.submit(app("echo $$; exec sleep 10000"))
    (pid,) = pids_of(job, 1)
    helper = parent(parent(pid))
    kill(helper, signal.SIGSTOP)
    try:
        assert kx.end() == 0, kx.said()
        assert "1 jobs have not ended" in kx.said() and alive(pid)
    finally:
        kill(helper, signal.SIGCONT)
    all_gone(kx, [pid])
    kx.start()
    job.finish("CANCELLED")


def test_linger(make_kx):
    """With -o linger an unmount ends no job; the next mount has them."""
    kx = make_kx("linger")
    job = kx.submit(app(FAMILY + UNTIL_END + "echo last"))
    ends = kx.submit(app("echo $$; while [ ! -e ends ]; do sleep 0.02; done; exit 4", name="ends"))
    pids = pids_of(job)
    mine = pids_of(ends, 1)
    assert kx.end() == 0
    assert err_of(os.stat, kx.mnt / "jobs") == "ENOENT"
    assert all(alive(pid) for pid in pids + mine)
    (kx.work / "ends").touch()
    wait_for(lambda: not alive(mine[0]))
    kx.start()
    assert job.state() == "RUNNING" and all(alive(pid) for pid in pids)
    ends.finish("FAILED")
    assert ends.replica()["exit_code"] == 4
    (kx.work / "end").touch()
    job.finish()
    assert job.log().decode() == f"{pids[0]}\n{pids[1]}\nlast\n"
    all_gone(kx, pids)
    last = kx.submit(app("exec sleep 10000", name="last"))
    last.until("RUNNING")
    rmdir(last.dir)


def test_launch_that_was_cut_off(kx):
    """A crash while a record is made leaves nothing; files without a record are not removed."""
    job = kx.submit(app("true"), "app.yaml")
    job.finish()
    kx.end()
    (kx.state / "jobs/.cut.new").write_text("kxfs job 1")
    (kx.state / "jobs/.cut.room").write_text("")
    (kx.state / "output/kept").mkdir()
    (kx.state / "output/kept/notes").write_text("mine")
    kx.start()
    key = kx.folder(job.id).name
    assert os.listdir(kx.state / "jobs") == [key] and sorted(os.listdir(kx.state / "output")) == sorted([key, "kept"])
    assert " warning " not in kx.read(".kxfs", "log")
