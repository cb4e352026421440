# SPDX-License-Identifier: MIT
"""What outlives the daemon: a remount, and a daemon that is killed."""

import os
import pathlib
import signal
import threading

import pytest
from harness import alive, app, err_of, is_mounted, kill, run, wait_for


def everything(job, where=None):
    """The bytes of all files of a job that don't block."""
    top = where or job.dir
    return {os.path.relpath(os.path.join(path, name), top): pathlib.Path(path, name).read_bytes()
            for path, _, files in os.walk(top) for name in files
            if not os.path.islink(os.path.join(path, name)) and name != "ctl"}


@pytest.fixture
def several(kx):
    """Jobs that have ended in every way."""
    jobs = {
        "good": kx.submit(app("echo good", num_replicas=2), "good.yaml"),
        "bad": kx.submit(app("echo bad; exit 3", max_retries=1), "bad.yaml"),
        "killed": kx.submit(app("echo killed; kill -KILL $$"), "killed.yaml"),
        "ended": kx.submit(app("echo ended; exec sleep 1000"), "ended.yaml"),
    }
    jobs["good"].finish()
    jobs["bad"].finish("FAILED")
    jobs["killed"].finish("FAILED")
    jobs["ended"].until_logged("ended")
    pathlib.Path(jobs["ended"] / "ctl").write_text("terminate")
    jobs["ended"].until("CANCELLED", "FAILED")
    removed = kx.submit(app("echo removed"), "removed.yaml")
    removed.finish()
    os.rmdir(removed.dir)
    jobs["removed"] = removed
    return jobs


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_finished_jobs(kx, several, sig):
    """Byte for byte the same afterwards, history and submit/ too."""

    def look():
        files = {name: everything(job) for name, job in several.items() if name != "removed"}
        files["removed"] = everything(several["removed"], several["removed"].old)
        times = {name: (os.stat(job.dir).st_mtime_ns, os.stat(job.dir).st_ctime_ns)
                 for name, job in several.items() if name != "removed"}
        submit = {name: os.readlink(kx / "submit" / name) if name.endswith(".job")
                  else (kx / "submit" / name).read_bytes() for name in kx.ls("submit")}
        return files, times, submit, kx.ls("jobs"), kx.ls("history")

    before = look()
    kx.restart(sig)
    assert look() == before
    for name, job in several.items():
        if name != "removed":
            assert job.read("wait") == job.read("state")


def test_directory_that_is_not_utf8(make_kx):
    """A job is known again whatever the directory is called that it ran in."""
    kx = make_kx(start=False)
    kx.work = pathlib.Path(os.fsdecode(os.fsencode(kx.work) + b"/caf\xe9"))
    kx.work.mkdir()
    kx.start()
    job = kx.submit(app("pwd"))
    job.finish()
    assert r"work_dir: " in job.read("manifest.yaml") and r"/caf\xe9" in job.read("manifest.yaml")
    kx.restart()
    assert job.state() == "SUCCEEDED"
    assert (kx / "jobs" / job.id / "main-0/log").read_bytes() == os.fsencode(kx.work) + b"\n"


def test_order_of_jobs(kx):
    """ls -U, by creation, before and after."""
    ids = []
    for _ in range(10):
        job = kx.submit(app("true"))
        job.finish()
        ids.append(job.id)
    assert os.listdir(kx / "jobs") == ids
    kx.restart()
    assert os.listdir(kx / "jobs") == ids


def test_refused_files(kx):
    assert err_of(kx.write, "submit/bad.yaml", "roles: [") == "EINVAL"
    error = kx.read("submit", "bad.yaml.error")
    kx.write("submit/notes.txt", "scratch")
    kx.restart()
    assert kx.read("submit", "bad.yaml.error") == error
    assert kx.read("submit", "bad.yaml") == "roles: ["
    assert kx.read("submit", "notes.txt") == "scratch"
    assert kx.ls("jobs") == []


def test_crash_leaves_no_orphans(kx):
    """SIGKILL of kxfs: the next start ends what still runs, setsid'd processes too, and says so."""
    job = kx.submit(app("echo $$; setsid sh -c 'echo $$; exec sleep 10000' & exec sleep 10000", num_replicas=2))
    wait_for(lambda: all(len(job.log(r).split()) == 2 for r in ("main-0", "main-1")))
    pids = [int(n) for r in ("main-0", "main-1") for n in job.log(r).split()]
    done = kx.submit(app("echo done"))
    done.finish()
    logs = job.log("main-0"), job.log("main-1")
    kx.end(signal.SIGKILL)
    assert all(alive(pid) for pid in pids)  # the crash alone ends nothing
    assert err_of(os.listdir, kx.mnt) == "ENOTCONN"
    kx.start()  # replaces its own dead mount
    wait_for(lambda: not any(alive(pid) for pid in pids), what="the orphans to end")
    job.finish("FAILED")
    assert (job.log("main-0"), job.log("main-1")) == logs
    assert job.read("why") != ""
    assert done.state() == "SUCCEEDED" and done.log() == b"done\n"


def test_crash_loses_no_output(kx):
    """What is printed while no daemon runs is in the log afterwards."""
    job = kx.submit(app("echo before; while [ ! -e go ]; do sleep 0.02; done; echo between; touch said; exec sleep 10000"))
    job.until_logged("before")
    kx.end(signal.SIGKILL)
    (kx.work / "go").touch()
    wait_for(lambda: (kx.work / "said").exists())
    kx.start()
    job.finish("FAILED")
    assert job.log() == b"before\nbetween\n"
    assert job.read("log") == "main/0 before\nmain/0 between\n"


def test_crash_while_it_prints(kx):
    """SIGKILL of kxfs in the middle of much output, which is also opened anew: no byte is lost."""
    job = kx.submit(app("""
i=0
while [ ! -e stop ]; do
	echo a$i
	echo b$i > /dev/stderr
	i=$((i + 1))
	echo $i > .n; mv .n n
done
exec sleep 10000
"""))

    def count():
        return int((kx.work / "n").read_text()) if (kx.work / "n").exists() else 0

    wait_for(lambda: count() > 50)
    kx.end(signal.SIGKILL)
    n = count()
    wait_for(lambda: count() > n + 50, what="output without kxfs")
    (kx.work / "stop").touch()
    n = count()
    kx.start()
    job.finish("FAILED")
    lines = job.log().decode().splitlines()
    assert len(lines) >= 2 * n
    assert lines == [f"{'ab'[i % 2]}{i // 2}" for i in range(len(lines))]
    assert job.read("log") == "".join(f"main/0 {line}\n" for line in lines)


def test_crash_leaves_nobody_who_writes(kx):
    """A process that has left the job holds its output open over a crash: at the next start what
    it has printed is kept, and nobody writes the log any more."""
    job = kx.submit(app("""
env -i setsid sh -c 'echo $$ > .pid; mv .pid pid; echo left; while [ -e pid ]; do sleep 0.1; done' &
exec sleep 10000
"""))
    job.until_logged("left")
    kx.end(signal.SIGKILL)
    log, = (kx.state / "jobs" / job.id / "logs").iterdir()
    assert run(["fuser", str(log)], check=False).stdout != ""
    kx.start()
    job.finish("FAILED")
    wait_for(lambda: run(["fuser", str(log)], check=False).stdout == "", what="nobody to write")
    assert job.log() == b"left\n"
    (kx.work / "pid").unlink()


def test_crash_of_one_that_finished_meanwhile(kx):
    """A job that ends while no daemon runs is not left RUNNING."""
    job = kx.submit(app("echo $$; while [ ! -e go ]; do sleep 0.02; done"))
    job.until_logged("\n")
    pid = int(job.log())
    kx.end(signal.SIGKILL)
    (kx.work / "go").touch()
    wait_for(lambda: not alive(pid))
    kx.start()
    assert job.until("FAILED", "SUCCEEDED")


def test_crash_while_suspended(make_kx):
    kx = make_kx("grace=1")
    job = kx.submit(app("echo $$; exec sleep 10000"))
    job.until_logged("\n")
    pid = int(job.log())
    pathlib.Path(job / "ctl").write_text("suspend")
    kx.end(signal.SIGKILL)
    kx.start()
    wait_for(lambda: not alive(pid))
    assert job.until("FAILED", "CANCELLED")


def test_other_processes_are_left_alone(kx, make_kx):
    """Two mounts: the crash and restart of one does not touch the other's jobs."""
    other = make_kx()
    theirs = other.submit(app("echo $$; exec sleep 10000"))
    theirs.until_logged("\n")
    mine = kx.submit(app("echo $$; exec sleep 10000"))
    mine.until_logged("\n")
    kx.end(signal.SIGKILL)
    kx.start()
    mine.finish("FAILED")
    assert theirs.state() == "RUNNING" and alive(int(theirs.log()))
    kx.end()
    assert theirs.state() == "RUNNING" and alive(int(theirs.log()))
    kx.start()


def test_accepted_is_kept(kx):
    """Killed in the middle of submissions: each that close() accepted is there afterwards, once."""
    accepted = []
    stop = threading.Event()

    def submit(n):
        i = 0
        while not stop.is_set():
            name = f"s{n}-{i}.yaml"
            if err_of(kx.write, f"submit/{name}", app("true", name=f"s{n}-{i}")):
                return
            accepted.append(f"s{n}-{i}")
            i += 1

    threads = [threading.Thread(target=submit, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    wait_for(lambda: len(accepted) >= 20)
    kx.end(signal.SIGKILL)
    stop.set()
    for thread in threads:
        thread.join()
    kx.start()
    apps = [job.status()["app"] for job in kx.jobs()]
    assert set(accepted) <= set(apps)
    assert len(apps) == len(set(apps))
    for job in kx.jobs():
        job.until("SUCCEEDED", "FAILED")
    for name in accepted:
        assert kx.job_of(f"{name}.yaml").status()["app"] == name


def test_damaged_record(kx):
    """A job whose record can't be read does not keep the mount from coming up, nor the others."""
    good = kx.submit(app("echo good"))
    bad = kx.submit(app("echo bad"))
    for job in (good, bad):
        job.finish()
    kx.end()
    records = list((kx.state / "jobs" / bad.id).glob("job.json"))
    assert records
    records[0].write_text('{"id": [')
    kx.start()
    assert good.log() == b"good\n"
    assert f"{records[0]} is damaged;" in kx.read(".kxfs", "log")
    assert records[0].read_text() == '{"id": ['
    assert (kx.state / "jobs" / bad.id / "logs" / "main-0.0").read_bytes() == b"bad\n"


def test_umount_from_outside(kx):
    """umount ends the daemon, cleanly, and its jobs with it."""
    job = kx.submit(app("echo $$; exec sleep 10000"))
    job.until_logged("\n")
    pid = int(job.log())
    run(["umount", str(kx.mnt)])
    proc, kx.proc = kx.proc, None
    assert proc.wait(timeout=60) == 0
    assert not is_mounted(kx.mnt) and not alive(pid)
    kx.start()
    assert job.state() == "CANCELLED"


def test_repeated_crashes(kx):
    """Ten crashes in a row, one soon after the other."""
    job = kx.submit(app("echo kept"))
    job.finish()
    for _ in range(10):
        kx.submit(app("exec sleep 10000"))
        kx.end(signal.SIGKILL)
        kx.start()
    assert job.log() == b"kept\n" and job.state() == "SUCCEEDED"
    assert len(kx.ls("jobs")) == 11
    wait_for(lambda: all(other.state() in ("FAILED", "SUCCEEDED") for other in kx.jobs()))
    kill(kx.pid, 0)


def test_transitions(kx):
    """When each phase began, over a restart of the job and a remount."""
    job = kx.submit(app("echo hello; sleep 1000"))
    job.until_logged("hello")
    run(f"echo restart > {job.dir}/ctl")
    phases = ["Pending", "Running", "Restarting", "Running", "Terminating", "Terminated"]
    wait_for(lambda: [t["phase"] for t in job.status()["transitions"]] == phases[:4])
    run(f"echo terminate > {job.dir}/ctl")
    job.until("FAILED")
    before = job.status()
    assert [t["phase"] for t in before["transitions"]] == phases
    assert [t["state"] for t in before["transitions"]][-1] == "FAILED"
    times = [t["time"] for t in before["transitions"]]
    assert times == sorted(times) and times[0] == before["created"] and times[-1] == before["finished"]
    kx.restart()
    assert job.status() == before
