# SPDX-License-Identifier: MIT
"""What outlives kxfs: records, output and running jobs, through restarts, crashes and full disks."""

import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import threading
import time
import uuid

import pytest
import records
import yaml
from disk import started
from harness import Job, actions, alive, app, err_of, kill, popen, remove, rmdir, run, wait_for, write_ctl

# --- Restarts ---------------------------------------------------------------------------------
# State that outlives the daemon, after a remount and after a kill.


def everything(top):
    """Return the bytes of all files of a job in the directory TOP that don't block."""
    return {os.path.relpath(os.path.join(path, name), top): pathlib.Path(path, name).read_bytes()
            for path, _, files in os.walk(top) for name in files
            if not os.path.islink(os.path.join(path, name)) and name != "ctl"}


@pytest.fixture
def several(kx):
    """Jobs that have ended in all possible ways."""
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
    rmdir(removed.dir)
    jobs["removed"] = removed
    return jobs


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_finished_jobs(kx, several, sig):
    """After a restart, all files have the same bytes, in jobs/, history/ and submit/."""

    places = {name: job.old if name == "removed" else job.dir for name, job in several.items()}

    def look():
        files = {name: everything(place) for name, place in places.items()}
        times = {name: (os.stat(place).st_mtime_ns, os.stat(place).st_ctime_ns) for name, place in places.items()}
        submit = {name: os.readlink(kx / "submit" / name) if name.endswith(".job")
                  else (kx / "submit" / name).read_bytes() for name in kx.ls("submit")}
        return files, times, submit, kx.ls("jobs"), kx.history()

    before = look()
    kx.restart(sig)
    assert look() == before
    for name, job in several.items():
        if name != "removed":
            assert job.read("wait") == job.read("state")


def test_directory_that_is_not_utf8(make_kx):
    """kxfs recognizes a job even if its working directory has a name that is not UTF-8."""
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
    """ls -U lists jobs in the order of their creation, before and after a restart."""
    ids = []
    for _ in range(10):
        job = kx.submit(app("true"))
        job.finish()
        ids.append(job.id)
    assert os.listdir(kx / "jobs") == ids
    kx.restart()
    assert os.listdir(kx / "jobs") == ids


def test_crash_while_it_prints(kx):
    """kxfs is killed while a job prints a lot, partly to /dev/stderr, which it opens each time. No byte is lost."""
    job = kx.submit(app("""
i=0
while [ ! -e stop ]; do
	echo a$i
	echo b$i > /dev/stderr
	i=$((i + 1))
	echo $i > .n; mv .n n
done
"""))

    def count():
        return int((kx.work / "n").read_text()) if (kx.work / "n").exists() else 0

    wait_for(lambda: count() > 50)
    kx.end(signal.SIGKILL)
    n = count()
    wait_for(lambda: count() > n + 50, what="output without kxfs")
    kx.start()
    n = count()
    wait_for(lambda: count() > n + 50, what="output with the next kxfs")
    (kx.work / "stop").touch()
    job.finish()
    n = count()
    assert job.log().decode() == "".join(f"a{i}\nb{i}\n" for i in range(n))
    assert job.read("log") == "".join(f"main/0 a{i}\nmain/0 b{i}\n" for i in range(n))


def test_other_processes_are_left_alone(kx, make_kx):
    """There are two mounts. A crash, a restart and the end of one do not affect the jobs of the other."""
    other = make_kx()
    theirs = other.submit(app("echo $$; exec sleep 10000"))
    theirs.until_logged("\n")
    mine = kx.submit(app("echo $$; exec sleep 10000"))
    mine.until_logged("\n")
    for job in (theirs, mine):
        job.until("RUNNING")
    kx.end(signal.SIGKILL)
    kx.start()
    mine.until("RUNNING")
    rmdir(mine.dir)
    assert theirs.state() == "RUNNING" and alive(int(theirs.log()))
    kx.end()
    assert theirs.state() == "RUNNING" and alive(int(theirs.log()))
    kx.start()


def test_accepted_is_kept(kx):
    """kxfs is killed during submissions. Each document that close() has accepted has exactly one job afterwards."""
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
    """If the record of a job is damaged, kxfs moves the record and the job's output to aside/. All
    other jobs remain."""
    good = kx.submit(app("echo good"))
    bad = kx.submit(app("echo bad"))
    for job in (good, bad):
        job.finish()
    record = records.of(kx, bad.id)
    kx.end()
    record.write_text('{"id": [')
    kx.start()
    assert good.log() == b"good\n"
    aside = kx.state / "aside"
    assert f"{record} is damaged; kxfs neither shows nor launches its job" in kx.read(".kxfs", "log")
    assert f"has moved the record to {aside}/{record.name}.record" in kx.read(".kxfs", "log")
    assert (aside / f"{record.name}.record").read_text() == '{"id": ['
    assert (aside / record.name / "logs" / "main-0.0").read_bytes() == b"bad\n"
    kx.restart()
    assert "is damaged" not in kx.read(".kxfs", "log") and kx.ls("jobs") == [good.id]


def planned(kx, job, name):
    """Return the head of a record for another job, which the next mount would start. It is a
    changed copy of the head of JOB's record."""
    head = records.copy_of(records.head_of(records.of(kx, job.id)), str(uuid.uuid4()), name)
    head["state"]["over"] = False
    head["snapshot"].update(state="PENDING", phase="Pending", reason="", started=0, finished=0)
    head["snapshot"]["replicas"][0].update(state="PENDING", reason="", started=0, finished=0, exit_code=-1)
    head["plan"]["replicas"][0]["ended"] = False
    return head


def document(kx, job):
    return records.document_of(records.of(kx, job.id))


def test_damaged_byte_of_a_record(kx, request):
    """One bit of a record is wrong, or some bytes are missing, doubled or different. kxfs neither
    starts nor shows the job of such a record, and reports the record. It starts the job whose
    record is intact."""
    seed = request.config.getoption("--seed")
    if seed is None:
        seed = time.time_ns() % 1000000
    chance = random.Random(seed)
    print("seed", seed)
    job = kx.submit(app("echo $KXFS_JOB >> started; exec true", max_retries=3))
    job.finish()
    kx.end()
    (kx.work / "started").unlink()
    appdef = document(kx, job)
    records.add(kx, planned(kx, job, "app-whole"), appdef)
    head = planned(kx, job, "app-00000")
    end = len(records.sealed(head))
    # No checksum covers the letter at offset 11, which shows whether the job is in history/. kxfs
    # compares the checksum of the document, which is in the bytes from 56 on, only when it uses the
    # document.
    uncovered = {11, *range(56, 73)}
    for i in range(end + 300):
        key = str(uuid.uuid4())
        whole = records.sealed(records.copy_of(head, key, f"app-{i:05d}"), appdef)
        at = i % end
        n = min(chance.randrange(1, 30), end - at)
        if at in uncovered:
            continue
        if i < end:
            text = whole[:at] + bytes([whole[at] ^ 1 << chance.randrange(8)]) + whole[at + 1:]
        else:
            some = chance.choice([b"", whole[at:at + n] * 2, chance.randbytes(n), b"1" * n, b"true", b"0"])
            text = whole[:at] + some + whole[at + n:]
        if text != whole:
            (kx.state / "jobs" / key).write_bytes(text)
    kx.start()
    kept = Job(kx, "app-whole")
    kept.finish()
    assert sorted(kx.ls("jobs")) == sorted([job.id, kept.id]), seed
    assert (kx.work / "started").read_text() == "app-whole\n", seed
    assert " is damaged; kxfs neither shows nor launches its job, and " in kx.read(".kxfs", "log")
    assert kx.submit(app("true")).finish()


def test_many_attempts(kx, sanitized):
    """After days of failures a job has tens of thousands of logs. A start opens them all, but other requests are not
    delayed."""
    (kx.work / "go").touch()
    job = kx.submit(app("until [ -e go ]; do sleep 0.05; done"))
    job.finish()
    (kx.work / "go").unlink()
    kx.end()
    head = planned(kx, job, "app-many")
    attempts = 8000 if sanitized else 30000
    head["snapshot"]["replicas"][0]["attempt"] = attempts
    logs = kx.state / "output" / records.add(kx, head, document(kx, job)).name / "logs"
    kx.start()
    kx.submit(app("true")).finish()
    (kx.work / "go").touch()
    Job(kx, "app-many").finish()
    wait_for(lambda: len(os.listdir(logs)) == attempts + 1, what="all logs", step=0.2)
    assert "can't be" not in kx.read(".kxfs", "log")


def refused(kx, job, text):
    """Replace the submitted AppDef of JOB by TEXT, which this version of kxfs refuses. Then start kxfs."""
    record = records.of(kx, job.id)
    record.write_bytes(records.sealed(records.head_of(record), text.encode()))
    kx.start()


WHY = "this version of kxfs does not accept the job's app.yaml: app.yaml:"


def test_appdef_that_a_later_version_refuses(kx):
    """kxfs still shows a job whose AppDef this version refuses, and the job's processes continue.
    But kxfs starts no further process for it, and reports the reason."""
    job = kx.submit(app("[ -e go ] || echo begun; until [ -e go ]; do sleep 0.05; done; echo out; exit 3", max_retries=9))
    over = kx.submit(app("echo over"))
    job.until_logged("begun")
    over.finish()
    kx.end(signal.SIGKILL)
    text = document(kx, job).decode().replace("{", '{"later": 1,', 1)
    refused(kx, job, text)
    assert job.state() == "RUNNING" and "restart" not in actions(job) and "terminate" in actions(job)
    assert yaml.safe_load(job.read("manifest.yaml"))["app_error"].startswith(WHY)
    (kx.work / "go").touch()
    job.until("FAILED")
    assert job.log() == b"begun\nout\n" and job.status()["retries"] == 0
    assert f"exit code 3; kxfs does not restart the replica: {WHY}" in job.status()["message"]
    # A finished job only needs to show its AppDef.
    kx.end()
    refused(kx, over, text)
    assert over.state() == "SUCCEEDED" and over.log() == b"over\n" and over.read("app.yaml") == text
    assert yaml.safe_load(over.read("manifest.yaml"))["app_error"].startswith(WHY)


def test_damaged_appdef(kx):
    """kxfs starts no job from a document that differs from the submitted one."""
    job = kx.submit(app("echo $KXFS_JOB >> started"))
    job.finish()
    kx.end()
    (kx.work / "started").unlink()
    record = records.add(kx, planned(kx, job, "app-planned"), document(kx, job))
    record.write_bytes(record.read_bytes()[:-2] + b"?\n")
    kx.start()
    planned_job = Job(kx, "app-planned")
    planned_job.until("FAILED")
    assert planned_job.status()["reason"] == "StartError" and "app.yaml is damaged" in planned_job.status()["message"]
    assert "app.yaml is damaged" in planned_job.read("why") and planned_job.log() == b""
    assert not (kx.work / "started").exists()


def test_links_of_jobs(kx):
    """NAME.job leads to the job that was launched last under this name, even after a kill. If a user removes the link,
    it does not return, neither for that job nor for an older one."""
    old = kx.submit(app("exec sleep 10000"), "gone.yaml")
    new = kx.submit(app("true"), "gone.yaml")
    kept = kx.submit(app("exec sleep 10000"), "kept.yaml")
    assert kx.job_of("gone.yaml").id == new.id
    os.remove(kx / "submit/gone.yaml.job")
    for signum in (signal.SIGKILL, signal.SIGTERM):
        assert kx.ls("submit") == ["gone.yaml", "kept.yaml", "kept.yaml.job"]
        assert kx.job_of("kept.yaml").id == kept.id
        time.sleep(2)  # kxfs saves the removal of the link within a second
        kx.restart(signum)
    new.finish()
    new.cancel()
    os.rmdir(kx / "history" / new.id)
    assert kx.ls("submit") == ["gone.yaml", "kept.yaml", "kept.yaml.job"]
    assert {job.id for job in kx.jobs()} == {old.id, kept.id}
    # A rename does not launch the contents again, and the link keeps the name that was submitted.
    for name in ("gone", "kept"):
        os.rename(kx / f"submit/{name}.yaml", kx / f"submit/{name}2.yaml")
    assert kx.ls("submit") == ["gone2.yaml", "kept.yaml.job", "kept2.yaml"]
    assert len(kx.ls("jobs")) == 2


def test_launched_and_renamed(kx):
    """After a crash, kxfs still knows which contents were launched, whatever name their file has now."""
    kx.submit(app("true"), "x.yaml").finish()
    os.rename(kx / "submit/x.yaml", kx / "submit/scratch")
    kx.restart(signal.SIGKILL)
    os.rename(kx / "submit/scratch", kx / "submit/y.yaml")
    assert len(kx.ls("jobs")) == 1
    kx.write("submit/tmp", app("exit 0"))
    kx.restart(signal.SIGKILL)
    os.rename(kx / "submit/tmp", kx / "submit/y.yaml")
    assert len(kx.ls("jobs")) == 2 and kx.job_of("y.yaml")


def test_a_file_goes_with_its_job(make_kx):
    """A file in submit/ expires with the record of its job. It stays if it was changed since the launch, if a process
    has it open, or if it was never launched."""
    kx = make_kx("history_keep=3s")
    kx.write("submit/notes.tmp", "scratch")
    for name in ("old.yaml", "written.yaml", "open.yaml", "forgotten.yaml"):
        job = kx.submit(app("true"), name)
        job.finish()
        job.cancel()
    os.rmdir(kx / "history" / job.id)
    with open(kx / "submit/written.yaml", "a", encoding="utf-8") as f:
        f.write("bad")
        with contextlib.suppress(OSError):
            f.close()
    with open(kx / "submit/open.yaml", encoding="utf-8"):
        wait_for(lambda: not kx.history(), what="expiry")
        wait_for(lambda: "old.yaml" not in kx.ls("submit"), what="the file to be removed")
        assert kx.ls("submit") == ["forgotten.yaml", "notes.tmp", "open.yaml", "written.yaml", "written.yaml.error"]


def test_a_file_goes_with_its_newest_job(make_kx):
    """If a file was launched twice, it remains when its first job expires."""
    kx = make_kx("history_keep=3s")
    go = kx.work / "go"
    text = app(f"while [ ! -e {go} ]; do sleep 0.1; done")
    go.touch()
    first = kx.submit(text, "x.yaml")
    first.finish()
    first.cancel()
    go.unlink()
    second = kx.submit(text, "x.yaml")
    wait_for(lambda: not kx.history(), what="the expiry of the first job")
    assert second.state() == "RUNNING"
    assert kx.read("submit/x.yaml") == text
    go.touch()
    second.finish()
    second.cancel()
    wait_for(lambda: kx.ls("submit") == [], what="the expiry of the file")


def test_transitions(kx):
    """`transitions` shows when each phase began, even after a restart of the job and a remount."""
    job = kx.submit(app("echo hello; sleep 1000"))
    job.until_logged("hello")
    run(f"echo restart > {job.dir}/ctl")
    phases = ["Pending", "Running", "Restarting", "Running", "Terminating", "Terminated"]
    wait_for(lambda: [t["phase"] for t in job.status()["transitions"]] == phases[:4])
    assert [t["state"] for t in job.status()["transitions"]] == ["PENDING", "RUNNING", "PENDING", "RUNNING"]
    run(f"echo terminate > {job.dir}/ctl")
    job.until("FAILED")
    before = job.status()
    assert [t["phase"] for t in before["transitions"]] == phases
    assert [t["state"] for t in before["transitions"]][-1] == "FAILED"
    times = [t["time"] for t in before["transitions"]]
    assert times == sorted(times) and times[0] == before["created"] and times[-1] == before["finished"]
    kx.restart()
    assert job.status() == before


def test_state_directory_is_removed(kx):
    """A user removes the state directory of a mount. kxfs still shows the jobs it knows, reading output fails, and
    one message has the reason."""
    job = kx.submit(app("echo hello"), "app.yaml")
    job.finish()
    assert job.log() == b"hello\n"

    def removed():  # the daemon may still remove or create a file there
        shutil.rmtree(kx.state, ignore_errors=True)
        return not kx.state.exists()

    wait_for(removed, what="the state directory to be gone")
    assert job.state() == "SUCCEEDED" and job.id in kx.read("list")
    for name in ("log", "stamped", "main-0/log", "main-0/stamped", "follow", "main-0/follow", "app.yaml", "manifest.yaml"):
        p = run(["cat", str(job / name)], check=False)
        assert p.returncode == 1 and p.stdout == "", name
    for _ in range(2):
        said = [line for line in kx.read(".kxfs", "log").splitlines() if "the state directory " in line and " is gone: " in line]
        assert len(said) == 1 and f" error the state directory {kx.state} is gone" in said[0], said


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGKILL])
def test_merged_log_that_could_not_be_made(kx, sig):
    """If the disk refuses a merged log until kxfs ends, the next start creates it, even for a finished job."""
    job = kx.submit(app("while [ ! -e go ]; do sleep 0.02; done; echo one; echo two", num_replicas=2))
    job.until("RUNNING")
    folder = kx.folder(job.id)
    wait_for(lambda: (folder / "unmerged").exists(), what="the mark")
    (folder / "merged").mkdir()  # in the way of the merged log, so that it can't be created, as on a full disk
    (kx.work / "go").touch()
    job.finish()
    kx.end(sig)
    (folder / "merged").rmdir()
    kx.start()
    assert job.state() == "SUCCEEDED"
    merged = job.read("live/follow")
    assert sorted(merged.splitlines()) == sorted(f"main/{k} {word}" for k in range(2) for word in ("one", "two"))
    assert job.read("log") == merged
    wait_for(lambda: not (folder / "unmerged").exists(), what="the mark to go")


# --- Crashes ----------------------------------------------------------------------------------
# Local jobs run under helpers, so a crash of kxfs ends none of them. Whatever a job does to its parent, its session and
# its environment, that affects neither kxfs nor another job, and no process outlives the job.
#
# KXFS_TEST_CRASHES is how often test_many_crashes kills kxfs (default 10), KXFS_TEST_CRASH_JOBS the number of jobs
# (10).

CRASHES = int(os.environ.get("KXFS_TEST_CRASHES", "10"))
JOBS = int(os.environ.get("KXFS_TEST_CRASH_JOBS", "10"))

# Start a process in another session and without the environment of the job. Print the pids of the
# shell and of this process.
FAMILY = """
echo $$
env -i setsid /bin/sh -c 'echo $$ > .pid; mv .pid pid; exec sleep 10000' &
while [ ! -e pid ]; do sleep 0.02; done
cat pid
"""
UNTIL_END = "while [ ! -e end ]; do sleep 0.02; done\n"


def pids_of(job):
    """Return the two pids that FAMILY prints."""
    wait_for(lambda: len(job.log().split()) >= 2, what="the pids")
    return [int(word) for word in job.log().split()[:2]]


def all_gone(kx, pids):
    wait_for(lambda: not any(alive(pid) for pid in pids), what="all that the job has started to end")
    wait_for(lambda: not [pid for pid in kx.helpers() if alive(pid)], what="the helpers to end")


# --- a crash --------------------------------------------------------------------------------------


def test_killed_before_the_start(make_kx):
    """kxfs is killed after it has recorded a job and before it has started the job. After the next start, the job is
    in history/."""
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
        assert "kxfs ended before it launched the job" in (job.old / "why").read_text()
        wait_for(lambda: not os.listdir(kx.state / "output"), what="what was left to be removed")
        remove(job.old)
        wait_for(lambda: not record.exists(), what="the record to be removed")
        assert not (kx.work / "started").exists()


def test_jobs_run_on(kx):
    """Jobs and their logs continue during a crash of kxfs. `wait` and `follow` of the next mount return when the
    jobs end."""
    job = kx.submit(app(FAMILY + UNTIL_END + "echo last; exit 3"))
    pids = pids_of(job)
    kx.end(signal.SIGKILL)
    assert all(alive(pid) for pid in pids)
    kx.start()
    job.until("RUNNING")  # the record or the helper shows that immediately
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
    """If a job ends while no daemon runs, the next start learns how it ended."""
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
    """A crash does not change the number of remaining retries, and each attempt keeps its log."""
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
    pids = {job.id: job.pid() for job in (removed, suspended, terminated, restarted)}
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
    """If kxfs is killed while it removes a job, the next start finishes the removal."""
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
    """After a crash, finished jobs that were removed are still in history/, with their times and states."""
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
    """kxfs is killed repeatedly at random moments. All jobs succeed, and their logs are exact. Half of the jobs fail
    once in the middle and are retried."""
    seed = pytestconfig.getoption("--seed") or random.randrange(1 << 32)
    rng = random.Random(seed)
    print(f"seed {seed}, {CRASHES} kills")
    # Each attempt prints until it may end, and leaves the number of its lines in a file.
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
    """kxfs is killed while it copies the last output of an attempt to the merged log. In the merged
    log, the output of the next attempt still follows after this output."""
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
        disk.go_on()  # a signal does not end a call on a mount that hangs
        kx.end(signal.SIGKILL)

        disk.hang("open", f"/{first}")
        kx.start()
        wait_for(lambda: disk.hangs(f"/{first}"), what="the log to be read again")
        end = time.monotonic() + 1  # the next attempt has time to print if kxfs starts it too early
        while time.monotonic() < end and not any(file.stat().st_size for file in logs.iterdir() if file.name != first):
            time.sleep(0.02)
        disk.go_on()
        job.finish()
        assert job.read("log") == "main/0 one\nmain/0 two\nmain/0 one\n"


# --- what a job can do to its helper ---


@pytest.mark.parametrize("sig", ["TERM", "HUP", "INT", "USR1"])
def test_signal_to_the_parent(kx, sig):
    other = kx.submit(app("echo $$; exec sleep 10000"))
    job = kx.submit(app(f"echo up; kill -{sig} $PPID; kill -{sig} $(cut -d' ' -f4 /proc/$PPID/stat); sleep 0.2; echo down"))
    job.finish()
    assert job.log() == b"up\ndown\n"
    assert other.state() == "RUNNING" and alive(other.pid())


def test_kill_of_the_parent(kx):
    """A job kills its parent. This ends the replica with all its processes and nothing else, and kxfs reports it."""
    other = kx.submit(app("echo $$; exec sleep 10000", name="other"))
    job = kx.submit(app(FAMILY + "kill -9 $PPID\nexec sleep 10000"))
    pids = pids_of(job)
    job.finish("FAILED")
    wait_for(lambda: not any(alive(pid) for pid in pids))
    assert job.log().decode() == f"{pids[0]}\n{pids[1]}\n"
    assert job.replica()["reason"] == "HelperKilled"
    assert "helper process" in job.read("why") and "SIGKILL" in job.replica()["message"]
    assert other.state() == "RUNNING" and alive(other.pid())


def parent(pid):
    return int(run(f"cut -d' ' -f4 /proc/{pid}/stat").stdout)


@pytest.mark.parametrize("down", [False, True])
def test_kill_of_the_helper(kx, down):
    """Another process kills the helper, while kxfs runs or while it is down. The result is the same as in
    test_kill_of_the_parent."""
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
    """Helper and guard are killed at the same time, after kxfs, so nothing is left that could end the program. It
    ends anyway."""
    job = kx.submit(app("echo $$; exec sleep 10000"))
    pid = job.pid()
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
    """An unmount does not wait for ever for processes. It leaves those that do not end, such as a stopped helper, to
    the next mount."""
    kx = make_kx("grace=1")
    job = kx.submit(app("echo $$; exec sleep 10000"))
    pid = job.pid()
    helper = parent(parent(pid))
    kill(helper, signal.SIGSTOP)
    try:
        assert kx.end() == 0, kx.said()
        assert "some jobs did not end" in kx.said() and alive(pid)
    finally:
        kill(helper, signal.SIGCONT)
    all_gone(kx, [pid])
    kx.start()
    job.finish("CANCELLED")


def test_linger(make_kx):
    """With -o linger, jobs continue after an unmount, and the next mount controls them."""
    kx = make_kx("linger")
    job = kx.submit(app(FAMILY + UNTIL_END + "echo last"))
    ends = kx.submit(app("echo $$; while [ ! -e ends ]; do sleep 0.02; done; exit 4", name="ends"))
    pids = pids_of(job)
    mine = ends.pid()
    assert kx.end() == 0
    assert err_of(os.stat, kx.mnt / "jobs") == "ENOENT"
    assert all(alive(pid) for pid in [*pids, mine])
    (kx.work / "ends").touch()
    wait_for(lambda: not alive(mine))
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
    """If kxfs crashes while it creates a record, nothing of the record is left. kxfs does not remove output without a
    record."""
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
