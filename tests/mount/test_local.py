# SPDX-License-Identifier: MIT
"""Local jobs: real processes, retry policies, exit codes, signals, cancel, big and odd output."""

import contextlib
import hashlib
import json
import os
import pathlib
import re
import resource
import signal
import time

import pytest
import yaml
from disk import Disk
from harness import FINAL, alive, app, err_of, grows, popen, python_app, rmdir, run, sh_role, wait_for, write_ctl
from metrics import Metrics


def processes_of(ident):
    """Return the processes with the job's mark."""
    needle = f"KXFS_JOB={ident}".encode()
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            if needle in pathlib.Path(f"/proc/{entry}/environ").read_bytes().split(b"\0"):
                found.append(int(entry))
        except OSError:
            pass
    return found


def gone(ident):
    wait_for(lambda: not processes_of(ident), what=f"the processes of {ident} to end")


def pid_from(job, replica="main-0"):
    """Return the number that the replica prints on its first line."""
    job.until_logged("\n", replica)
    return int(job.log(replica).split()[0])


# --- a process's environment ---


def test_environment(make_kx):
    kx = make_kx(env={"FROM_THE_MOUNT": "yes"})
    job = kx.submit(app("env", env={"OWN": "a b$$c", "HERE": "${app_id}", "N": "${replica_id}",
                                    "UNKNOWN": "${nothing}"}, num_replicas=2))
    job.finish()
    env = dict(line.split("=", 1) for line in job.log("main-1").decode().splitlines())
    assert env["OWN"] == "a b$c" and env["HERE"] == job.id and env["N"] == "1"
    assert env["UNKNOWN"] == "${nothing}" and env["FROM_THE_MOUNT"] == "yes"
    assert env["TORCHX_RANK0_HOST"] == "localhost" and env["KXFS_JOB"] == job.id


@pytest.mark.parametrize("handle, seen", [(None, "kxfs://torchx/{}"), ("kxfs://mine/${app_id}", "kxfs://mine/{}"),
                                          ("kubernetes://torchx/${app_id}", "kxfs://torchx/{}")])
def test_handle(kx, handle, seen):
    """The job's name for TorchX: that of its submitter, if it belongs to this mount."""
    job = kx.submit(app("echo $TORCHX_JOB_ID", env={"TORCHX_JOB_ID": handle} if handle else {}))
    job.finish()
    assert job.log().decode() == seen.format(job.id) + "\n"


def test_surroundings(kx):
    """Working directory, descriptors, terminal, process group, signals: as a program expects."""
    job = kx.submit(python_app("""
import os, signal
print("cwd", os.getcwd())
print("fds", sorted(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}")))
print("stdin", os.readlink("/proc/self/fd/0"))
print("leader", os.getpgrp() == os.getpid())
print("pipe", signal.getsignal(signal.SIGINT) == signal.default_int_handler)
status = open("/proc/self/status").read()
print("blocked", int(status.split("SigBlk:")[1].split()[0], 16))
print("ignored", int(status.split("SigIgn:")[1].split()[0], 16) & ~(1 << (signal.SIGPIPE - 1)) & ~(1 << 24))
try:
    open("/dev/tty")
except OSError:
    print("no tty")
"""))
    job.finish()
    lines = job.log().decode().splitlines()
    assert f"cwd {kx.work}" in lines
    assert "fds [0, 1, 2]" in lines
    assert "stdin /dev/null" in lines
    assert "leader True" in lines and "pipe True" in lines
    assert "blocked 0" in lines and "ignored 0" in lines
    assert "no tty" in lines


def in_dir(path, script="pwd", **fields):
    return json.dumps({**json.loads(app(script, **fields)), "scheduler_args": {"cwd": str(path)}}, indent=1)


def test_directory_of_a_job(kx, tmp_path):
    """The run option cwd: programs start there, whatever the mount's directory is."""
    tmp_path.chmod(0o755)
    for place in (tmp_path / "a b ü", tmp_path / "link"):
        if place.name == "link":
            place.symlink_to(tmp_path / "a b ü")
        else:
            place.mkdir()
        job = kx.submit(in_dir(place))
        job.finish()
        assert os.path.samefile(job.log().decode().strip(), place)
        assert yaml.safe_load(job.read("manifest.yaml"))["work_dir"] == str(place)


@pytest.mark.parametrize("door", ["submit", "dryrun"])
def test_directory_that_is_none(kx, tmp_path, door):
    (tmp_path / "file").write_text("")
    cases = {"work": "must be an absolute path"}
    for place, why in [(tmp_path / "missing", "No such file or directory: no job can run there"),
                       (tmp_path / "file", "Not a directory: no job can run there"),
                       (kx.mnt, "is in the mount, which a job would keep busy: name another directory"),
                       (kx.mnt / "jobs", "is in the mount, which a job would keep busy: name another directory")]:
        cases[place] = f"{place}: {why}"
    for place, why in cases.items():
        assert err_of(kx.write, f"{door}/x.yaml", in_dir(place)) == "EINVAL"
        said = kx.read(door, "x.yaml.error")
        assert re.fullmatch(rf"x.yaml:\d+:\d+: scheduler_args.cwd: {re.escape(why)}\n", said), said
    assert kx.ls("jobs") == []


def test_arguments_are_not_split(kx):
    job = kx.submit(app("", roles=[{"name": "main", "image": "none", "entrypoint": "printf",
                                    "args": ["%s|", "a b", "", "*", "$HOME", "${replica_id}", "ü"]}]))
    job.finish()
    assert job.log().decode() == "a b||*|$HOME|0|ü|"


def test_several_roles(kx):
    job = kx.submit(app("", roles=[sh_role("echo reader", "reader", num_replicas=2),
                                   sh_role("echo trainer", "trainer", num_replicas=3, min_replicas=1)]))
    job.finish()
    names = sorted(d for d in os.listdir(job.dir) if "-" in d)
    assert names == ["reader-0", "reader-1", "trainer-0", "trainer-1", "trainer-2"]
    assert job.log("reader-1") == b"reader\n" and job.log("trainer-2") == b"trainer\n"
    roles = job.status()["roles"]
    assert [(r["name"], r["desired"]) for r in roles] == [("reader", 2), ("trainer", 3)]


def test_resources_and_mounts_are_recorded(kx):
    job = kx.submit(app("true", resource={"cpu": 4000, "memMB": 10**9, "gpu": 8},
                        mounts=["type=bind,src=/nonexistent,dst=/data,readonly"]))
    job.finish()
    assert "/nonexistent" in job.read("manifest.yaml")


# --- the end of a job ---


@pytest.mark.parametrize(("script", "state", "code", "sig"), [
    ("true", "SUCCEEDED", 0, None),
    ("exit 7", "FAILED", 7, None),
    ("exit 255", "FAILED", 255, None),
    ("kill -TERM $$", "FAILED", None, signal.SIGTERM),
    ("kill -KILL $$", "FAILED", None, signal.SIGKILL),
    ("kill -ABRT $$", "FAILED", None, signal.SIGABRT),
])
def test_exit(kx, script, state, code, sig):
    job = kx.submit(app(f"echo before; {script}"))
    assert job.finish(*FINAL) == state
    replica = job.replica()
    assert (replica["state"], replica["exit_code"], replica["signal"]) == (state, code, sig)
    assert job.log() == b"before\n"
    why = job.read("why")
    if state == "SUCCEEDED":
        assert why == ""
    else:
        # A person learns which replica failed, and how.
        assert "main-0" in why or "main/0" in why
        assert str(code if sig is None else int(sig)) in why


def test_program_that_is_not_there(kx):
    job = kx.submit(app("", roles=[{"name": "main", "image": "none", "entrypoint": "/no/such/program"}]))
    job.finish("FAILED")
    assert "/no/such/program" in job.read("why")
    assert "No such file" in job.read("why") or "not found" in job.read("why")


def test_dies_at_once(kx):
    """Twenty jobs whose programs end before kxfs can sample them."""
    jobs = [kx.submit(app("exit 1")) for _ in range(20)]
    for job in jobs:
        job.finish("FAILED")
        assert job.replica()["exit_code"] == 1


def test_one_of_several_fails(kx):
    """One failure ends the job; the other replicas do not continue."""
    job = kx.submit(app("""
if [ "$N" = 1 ]; then echo failing; exit 5; fi
echo $$; sleep 1000
""", num_replicas=3, env={"N": "${replica_id}"}))
    job.finish("FAILED")
    assert job.replica("main-1")["exit_code"] == 5
    assert "main-1" in job.read("why") or "main/1" in job.read("why")
    gone(job.id)


# --- retries -------------------------------------------------------------------------------------

# Replica 1 fails in its first attempt, once all have printed; replica 0 and the other role run until it has restarted.
FAIL_ONCE = """
echo "attempt of $N"
touch "said-$N"
if [ "$N" = 1 ]; then
	while [ ! -e said-0 ] || [ ! -e said-other ]; do sleep 0.05; done
	[ -e failed ] || { touch failed; exit 9; }
	touch done
fi
while [ ! -e done ]; do sleep 0.05; done
"""


def attempts(job):
    return {f"{role['name']}-{rep['id']}": rep["attempt"]
            for role in job.status()["roles"] for rep in role["replicas"]}


@pytest.mark.parametrize(("policy", "expected"), [
    ("APPLICATION", {"a-0": 1, "a-1": 1, "b-0": 1}),
    ("ROLE", {"a-0": 1, "a-1": 1, "b-0": 0}),
    ("REPLICA", {"a-0": 0, "a-1": 1, "b-0": 0}),
])
def test_retry_policy(kx, policy, expected):
    job = kx.submit(app("", roles=[
        sh_role(FAIL_ONCE, "a", num_replicas=2, max_retries=2, retry_policy=policy,
                env={"N": "${replica_id}"}),
        sh_role(FAIL_ONCE, "b", max_retries=2, retry_policy=policy, env={"N": "other"}),
    ]))
    job.finish()
    assert attempts(job) == expected
    for name, n in expected.items():
        label = b"attempt of other\n" if name == "b-0" else f"attempt of {name[-1]}\n".encode()
        assert job.log(name) == label
        for attempt in range(n):
            assert job.log(name, f"log.{attempt}") == label
    assert job.status()["retries"] == 1
    assert job.status()["max_retries"] == 2


def test_hot_spare(kx):
    job = kx.submit(app("[ -e once ] || { touch once; exit 1; }", max_retries=1, retry_policy="HOT_SPARE"))
    job.finish()
    assert job.replica()["attempt"] == 1


def test_retries_are_used_up(kx):
    job = kx.submit(app("echo try; exit 3", max_retries=2))
    job.finish("FAILED")
    assert job.replica()["attempt"] == 2 and job.status()["retries"] == 2
    assert [job.log(name=n) for n in ("log.0", "log.1", "log")] == [b"try\n"] * 3
    assert job.read("log") == "main/0 try\n" * 3


# --- cancel --------------------------------------------------------------------------------------


def test_cancel_is_sigterm(kx):
    """The replica receives SIGTERM, and its last words are kept."""
    job = kx.submit(app('trap "echo last words; exit 0" TERM; echo ready; sleep 1000 & wait'))
    job.until_logged("ready")
    rmdir(job.dir)
    assert not os.path.exists(job.dir)
    gone(job.id)
    wait_for(lambda: (job.old / "main-0/log").read_bytes() == b"ready\nlast words\n")
    assert (job.old / "state").read_text() == "CANCELLED\n"
    assert (job.old / "log").read_text() == "main/0 ready\nmain/0 last words\n"


# The second attempt prints until it is ended.
SECOND = """
cd {0}
[ -e tried ] && while :; do echo tick; sleep 0.05; done
touch tried
while [ ! -e go ]; do sleep 0.02; done
exit 1
"""


def test_directories_that_hang(make_kx):
    """Documents that name a directory which does not answer are refused, and delay nothing else, nor the end."""
    # LeakSanitizer stops all threads at the end, which is impossible for one that waits for this disk.
    kx = make_kx("grace=1", env={"ASAN_OPTIONS": "detect_leaks=0"})
    (kx.base / "place").mkdir()
    disk = Disk(kx, kx.base / "place")
    try:
        (kx.base / "disk/dir").mkdir()
        disk.hang("getattr", "/dir")
        files = [kx.base / f"{i}.yaml" for i in range(6)]
        for file in files:
            file.write_text(in_dir(kx.base / "place/dir", "true"))
        with disk.still():
            waiting = [popen(["cp", file, kx / "submit"]) for file in files]
            wait_for(lambda: disk.hangs("/dir"), what="the directory to be looked at")
            kx.submit(app("true")).finish("SUCCEEDED")
            for p in waiting:
                assert p.wait(timeout=60) != 0
            for file in files:
                assert "does not answer: no job can run there" in kx.read("submit", f"{file.name}.error")
            assert kx.end() == 0
    finally:
        disk.close()


@pytest.mark.parametrize("action", ["cancel", "suspend"])
def test_action_during_the_start(make_kx, action):
    """Actions requested while a program is being started are carried out as soon as it has started."""
    kx = make_kx("grace=1000")
    (kx.base / "place").mkdir()
    disk = Disk(kx, kx.base / "place")
    try:
        (kx.base / "disk/dir").mkdir()
        job = kx.submit(in_dir(kx.base / "place/dir", SECOND.format(kx.work), max_retries=1,
                                retry_policy="REPLICA"))
        job.until("RUNNING")
        disk.hang("getattr", "/dir")
        (kx.work / "go").touch()
        wait_for(lambda: disk.hangs("/dir"), what="the second start to hang")
        if action == "cancel":
            rmdir(job.dir)
            disk.go_on()
            wait_for(lambda: "phase: Cancelled" in (job.old / "status").read_text(), what="the end of the job")
        else:
            write_ctl(job, "suspend")
            disk.go_on()
            wait_for(lambda: Metrics(kx)("local_starts_total") == 2, what="the second attempt")
            wait_for(lambda: not grows(job), what="its last output")
            before = len(job.log())
            write_ctl(job, "resume")
            wait_for(lambda: len(job.log()) > before, what="it to print again")
            rmdir(job.dir)
        gone(job.id)
    finally:
        disk.close()


def test_many_last_words(kx):
    """Output after SIGTERM is kept, to the last byte."""
    job = kx.submit(python_app("""
import os, signal, sys, time
def last(*_):
    for i in range(100000):
        sys.stdout.buffer.write(b"%09d\\n" % i)
    sys.stdout.flush()
    os.system("echo last > /dev/stderr")
    sys.exit(0)
signal.signal(signal.SIGTERM, last)
print("ready", flush=True)
while True:
    time.sleep(1)
"""))
    job.until_logged("ready\n")
    rmdir(job.dir)
    wait_for(lambda: "phase: Cancelled" in (job.old / "status").read_text())
    assert (job.old / "main-0/log").read_bytes() == b"ready\n" + b"".join(
        b"%09d\n" % i for i in range(100000)) + b"last\n"


def test_cancel_of_one_that_ignores_sigterm(make_kx):
    kx = make_kx("grace=1")
    job = kx.submit(app('trap "" TERM; echo $$; while :; do sleep 0.1; done', num_replicas=2))
    pids = [pid_from(job, "main-0"), pid_from(job, "main-1")]
    begin = time.monotonic()
    rmdir(job.dir)
    # rmdir returns when the cancel is accepted, not when everything has ended.
    assert kx.ls("jobs") == []
    gone(job.id)
    assert time.monotonic() - begin >= 0.9
    # A dying process loses its environment a moment before it ends.
    wait_for(lambda: not any(alive(pid) for pid in pids), what="the processes to end")
    wait_for(lambda: (job.old / "state").read_text() == "CANCELLED\n")


def test_cancel_takes_daemons_too(make_kx):
    """Orphaned children in sessions of their own belong to the job, too."""
    kx = make_kx("grace=1")
    job = kx.submit(app("setsid sh -c 'sleep 1000 & sleep 1000' & (setsid sleep 1000 &) ; echo ready; sleep 1000"))
    job.until_logged("ready")
    wait_for(lambda: len(processes_of(job.id)) >= 4)
    rmdir(job.dir)
    gone(job.id)


def test_daemons_do_not_outlive_the_replica(kx):
    """A finished replica's remaining processes can't delay its end, nor continue to run."""
    job = kx.submit(app("(setsid sleep 1000 &); echo done"))
    job.finish()
    gone(job.id)
    assert job.log() == b"done\n"


def test_who_is_not_of_the_job_holds_nothing_back(kx):
    """A process that does not belong to the job has its output open: the job ends anyway, and the daemon's log
    reports what happened to the output."""
    job = kx.submit(app("echo $$; while [ ! -e go ]; do sleep 0.02; done; echo done"))
    pid = pid_from(job)
    fd = os.open(f"/proc/{pid}/fd/1", os.O_WRONLY)
    (kx.work / "go").touch()
    job.finish()
    assert job.log() == f"{pid}\ndone\n".encode()
    assert job.id in kx.read(".kxfs", "log") and "output is still open" in kx.read(".kxfs", "log")
    assert err_of(os.write, fd, b"late") == "EPIPE"
    os.close(fd)


def test_unmount_ends_what_runs(kx):
    job = kx.submit(app("echo $$; exec sleep 1000"))
    pid = pid_from(job)
    assert kx.end() == 0
    assert not alive(pid)
    kx.start()
    assert job.state() == "CANCELLED"
    assert job.read("wait") == "CANCELLED\n"


# --- output --------------------------------------------------------------------------------------


def test_no_newline(kx):
    job = kx.submit(app("printf 'no newline'"))
    job.finish()
    assert job.log() == b"no newline"
    assert job.read("log", binary=True).rstrip(b"\n") == b"main/0 no newline"


def test_100_mb(kx):
    """100 MB at full speed: complete and exact, as one log and merged."""
    job = kx.submit(python_app("""
import sys
block = b"".join(b"%011d\\n" % i for i in range(87382))[:1 << 20]
for i in range(100):
    sys.stdout.buffer.write(block)
"""))
    job.finish()
    block = b"".join(b"%011d\n" % i for i in range(87382))[:1 << 20]
    expected = hashlib.sha256()
    for _ in range(100):
        expected.update(block)
    assert os.stat(job / "main-0/log").st_size == 100 << 20
    got = run(["sha256sum", str(job / "main-0/log")]).stdout.split()[0]
    assert got == expected.hexdigest()
    stripped = run(f"sed 's,^main/0 ,,' {job.dir}/log | head -c {100 << 20} | sha256sum").stdout.split()[0]
    assert stripped == expected.hexdigest()


def test_full_disk(kx):
    """If a log can't grow any more, its writer is ended, and all files report the reason."""
    soft, hard = resource.prlimit(kx.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(kx.pid, resource.RLIMIT_FSIZE, (1 << 20, hard))
    job = kx.submit(app("exec yes"))
    job.until("FAILED")
    resource.prlimit(kx.pid, resource.RLIMIT_FSIZE, (soft, hard))
    assert os.stat(job / "main-0/log").st_size == 1 << 20
    replica = job.replica()
    assert (replica["reason"], replica["signal"]) == ("OutputLost", signal.SIGPIPE)
    for text in (replica["message"], job.status()["message"], job.read("why"), kx.read(".kxfs", "log")):
        assert "its output can't be written: File too large" in text


def test_end_on_a_full_disk(make_kx):
    """The result that `wait` has returned is true for the next mount too: space for it was reserved at the launch."""
    kx = make_kx(start=False)
    run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "kxfs-test", str(kx.state)])
    try:
        kx.start()
        jobs = [kx.submit(app("while [ ! -e go ]; do sleep 0.02; done; exit $N", num_replicas=n,
                              env={"N": "${replica_id}"}))
                for n in (1, 2, 1)]
        for job in jobs:
            job.until("RUNNING")
        with contextlib.suppress(OSError), open(kx.state / "filler", "wb", buffering=0) as f:
            while True:
                f.write(b"x" * 4096)
        (kx.work / "go").touch()
        told = [job.read("wait") for job in jobs]
        assert told == ["SUCCEEDED\n", "FAILED\n", "SUCCEEDED\n"]
        status = [job.status() for job in jobs]
        kx.end()
        os.remove(kx.state / "filler")
        kx.start()
        assert [job.read("wait") for job in jobs] == told
        assert [job.status() for job in jobs] == status
        assert not list(kx.state.glob("output/*/.*"))
        assert kx.end() == 0
    finally:
        if kx.proc:
            kx.end()
        run(["umount", "-l", str(kx.state)])


def test_many_replicas(kx):
    job = kx.submit(app("echo $N", num_replicas=100, env={"N": "${replica_id}"}))
    job.finish()
    assert sorted(job.read("log").splitlines()) == sorted(f"main/{i} {i}" for i in range(100))
    assert len(os.listdir(job / "logs")) == 100


def test_jobs_side_by_side(kx):
    """A hundred jobs at the same time: each has its own result and output."""
    jobs = [kx.submit(app(f"echo {i}; exit {i % 3}")) for i in range(100)]
    for i, job in enumerate(jobs):
        job.finish("FAILED" if i % 3 else "SUCCEEDED")
        assert job.log() == f"{i}\n".encode()
    assert len({job.id for job in jobs}) == 100
