# SPDX-License-Identifier: MIT
"""Slow answers to writers, and several writers at the same time."""

import collections
import contextlib
import os
import random
import re
import signal
import threading
import time

import harness
import pytest
import submitting
from disk import Disk, started
from preload import Clock
from submitting import BAD, GOOD, error_of, job_of, launched, put

# --- Slow answers -----------------------------------------------------------------------------
# submit/ when kxfs answers late: waiting, interrupts, deadlines, results that overtake each other. A document with a
# working directory on a disk that hangs is answered when the disk recovers: accepted if that directory is there, and
# refused if it is missing.

FOUND, MISSING = "held/found", "held/missing"
DOCUMENT = "name: app\nroles:\n- {name: main, image: none, entrypoint: 'true'}\n"


@pytest.fixture
def slow(make_kx):
    """(a mount, a disk on which all working directories hang)"""
    # LeakSanitizer stops all threads at the end, but it can't stop one that waits for this disk.
    kx = make_kx(env={"ASAN_OPTIONS": "detect_leaks=0"})
    (kx.base / "place").mkdir()
    disk = Disk(kx, kx.base / "place")
    (kx.base / "disk" / FOUND).mkdir(parents=True)
    disk.hang("getattr", "/held")
    yield kx, disk
    disk.close()


def waiting(kx, place):
    """Return a document that kxfs answers when its working directory PLACE answers."""
    return f"{DOCUMENT}scheduler_args: {{cwd: {kx.base}/place/{place}}}\n"


def later(fn, *args):
    """Run FN(*ARGS) in a thread. Return a function that waits for its result and returns it."""
    result = []
    thread = threading.Thread(target=lambda: result.append(fn(*args)))
    thread.start()

    def join():
        thread.join(harness.LIMIT)
        return result[0]

    return join


def until_asked(disk):
    """Wait until kxfs has a document that it can't answer. Its writer then waits in close() or rename()."""
    harness.wait_for(lambda: disk.hangs("/held"), what="the submission")


@pytest.mark.parametrize("place, error", [(FOUND, ""), (MISSING, "EINVAL")])
def test_close_waits_for_the_result(slow, place, error):
    kx, disk = slow
    begun = time.monotonic()
    done = later(put, kx, "x.yaml", waiting(kx, place))
    until_asked(disk)
    time.sleep(0.5)
    assert job_of(kx, "x.yaml") is error_of(kx, "x.yaml") is None
    disk.go_on()
    assert done() == error
    assert time.monotonic() - begun >= 0.5
    assert (job_of(kx, "x.yaml") is None) == bool(error)


def test_a_waiting_close_stops_nobody(slow):
    kx, disk = slow
    done = later(put, kx, "x.yaml", waiting(kx, FOUND))
    until_asked(disk)
    assert put(kx, "y.yaml", GOOD) == ""
    assert "y.yaml" in kx.ls("submit")
    assert kx.read("submit/x.yaml") == waiting(kx, FOUND)
    os.rename(kx / "submit/y.yaml", kx / "submit/z.yaml")
    os.remove(kx / "submit/z.yaml")
    assert job_of(kx, "x.yaml") is None
    disk.go_on()
    assert done() == ""
    assert launched(kx) == {job_of(kx, "x.yaml"), job_of(kx, "y.yaml")}


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("place", [FOUND, MISSING])
def test_interrupting_cp_ends_its_waiting_only(slow, sig, place):
    kx, disk = slow
    (kx.work / "doc").write_text(waiting(kx, place))
    cp = harness.popen(["cp", str(kx.work / "doc"), str(kx / "submit/x.yaml")])
    until_asked(disk)
    cp.send_signal(sig)
    assert cp.wait(timeout=harness.LIMIT) == -sig
    assert not launched(kx) and error_of(kx, "x.yaml") is None
    disk.go_on()
    if place == MISSING:
        submitting.refused(kx, "x.yaml", "No such file or directory")
    else:
        submitting.launched_once(kx, "x.yaml")


def test_busy_while_it_is_launched(slow):
    """A child of the writer still has the file open. During the launch and after it, the child can't change the file."""
    kx, disk = slow
    read, write = os.pipe()
    fd = os.open(kx / "submit/x.yaml", os.O_WRONLY | os.O_CREAT, 0o644)
    os.write(fd, waiting(kx, FOUND).encode())
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            until_asked(disk)
            os.write(write, harness.err_of(os.write, fd, b"# more\n").encode())
            disk.go_on()
            submitting.launched_once(kx, "x.yaml")
            for change in (os.write, b"#"), (os.ftruncate, 0):
                os.write(write, b" " + harness.err_of(change[0], fd, change[1]).encode())
        os._exit(0)
    os.close(fd)
    os.waitpid(pid, 0)
    assert os.read(read, 100) == b"EBUSY EBUSY EBUSY"
    os.close(read)
    os.close(write)
    assert kx.read("submit/x.yaml") == waiting(kx, FOUND)
    submitting.launched_once(kx, "x.yaml")


@pytest.mark.parametrize("first, second, jobs", [(FOUND, BAD, 1), (MISSING, GOOD, 1), (FOUND, GOOD, 2), (MISSING, BAD, 0)],
                         ids=["only first", "only second", "both", "none"])
def test_the_last_write_decides(slow, first, second, jobs):
    """The last write decides, even if the result of an earlier write arrives later."""
    kx, disk = slow
    done = later(put, kx, "x.yaml", waiting(kx, first))
    until_asked(disk)
    put(kx, "x.yaml", second)
    between = job_of(kx, "x.yaml")
    disk.go_on()
    done()
    assert len(launched(kx)) == jobs
    assert kx.read("submit/x.yaml") == second
    if second == GOOD:
        assert job_of(kx, "x.yaml") == between and error_of(kx, "x.yaml") is None
    else:
        assert "nonsense" in error_of(kx, "x.yaml")


def test_a_launch_goes_with_its_file(slow):
    """A file that is renamed during its launch is not launched again. NAME.job keeps the submitted name."""
    kx, disk = slow
    done = later(put, kx, "x.yaml", waiting(kx, FOUND))
    until_asked(disk)
    os.rename(kx / "submit/x.yaml", kx / "submit/y.yaml")
    disk.go_on()
    assert done() == ""
    assert kx.ls("submit") == ["x.yaml.job", "y.yaml"]
    assert len(launched(kx)) == 1


def test_removed_while_it_is_launched(slow):
    kx, disk = slow
    done = later(put, kx, "x.yaml", waiting(kx, FOUND))
    until_asked(disk)
    os.remove(kx / "submit/x.yaml")
    disk.go_on()
    assert done() == ""
    assert kx.ls("submit") == ["x.yaml.job"]


def test_rename_waits_and_replaces(slow):
    kx, disk = slow
    put(kx, "x.yaml", GOOD)
    put(kx, "tmp", waiting(kx, FOUND))
    done = later(harness.err_of, os.rename, kx / "submit/tmp", kx / "submit/x.yaml")
    until_asked(disk)
    assert kx.read("submit/x.yaml") == GOOD
    disk.go_on()
    assert done() == ""
    assert kx.read("submit/x.yaml") == waiting(kx, FOUND)
    assert kx.ls("submit") == ["x.yaml", "x.yaml.job"]
    assert len(launched(kx)) == 2


@pytest.mark.parametrize("answered", ["before", "after"])
def test_rename_has_a_deadline(slow, answered):
    """A user who renames the file again does not launch it twice, whether the answer comes before or after that."""
    kx, disk = slow
    put(kx, "tmp", waiting(kx, FOUND))
    assert harness.err_of(os.rename, kx / "submit/tmp", kx / "submit/x.yaml") == "ETIMEDOUT"
    assert "x.yaml" not in kx.ls("submit")
    if answered == "before":
        disk.go_on()
        harness.wait_for(lambda: job_of(kx, "x.yaml"), what="the late result")
    os.rename(kx / "submit/tmp", kx / "submit/x.yaml")
    disk.go_on()
    harness.wait_for(lambda: job_of(kx, "x.yaml"), what="the result")
    assert kx.ls("submit") == ["x.yaml", "x.yaml.job"]
    assert len(launched(kx)) == 1


def test_close_has_a_deadline(make_kx):
    """close() fails after 30 s. The result arrives later."""
    with started(make_kx(start=False)) as (kx, disk):
        disk.hang("create", "^/jobs/[.]")
        begun = time.monotonic()
        with disk.still():
            assert put(kx, "x.yaml", GOOD) == "ETIMEDOUT"
        assert time.monotonic() - begun >= 29.9  # timers have a resolution of milliseconds
        disk.go_on()
        submitting.launched_once(kx, "x.yaml")


def test_unmounting_answers_who_waits(slow):
    kx, disk = slow
    done = later(put, kx, "x.yaml", waiting(kx, FOUND))
    until_asked(disk)
    assert kx.end() == 0
    assert done() in ("ENOTCONN", "ECONNABORTED")  # at its deadline, it would have been ETIMEDOUT


# --- dryrun/ works the same, but ends with a manifest ---


def is_made(kx, name):
    """True if dryrun/NAME shows a manifest."""
    return "\nwork_dir: " in kx.read("dryrun", name)


def until_made(kx, name):
    harness.wait_for(lambda: is_made(kx, name), what=f"the manifest of {name}")


def dry_put(kx, name, text):
    return harness.err_of(kx.write, f"dryrun/{name}", text)


def test_dry_run_waits_for_the_result(slow):
    kx, disk = slow
    done = later(dry_put, kx, "x.yaml", waiting(kx, FOUND))
    until_asked(disk)
    assert kx.read("dryrun/x.yaml") == waiting(kx, FOUND)
    disk.go_on()
    assert done() == ""
    assert is_made(kx, "x.yaml")
    assert dry_put(kx, "y.yaml", waiting(kx, MISSING)) == "EINVAL"
    assert kx.ls("dryrun") == ["x.yaml", "y.yaml", "y.yaml.error"]
    assert kx.ls("jobs") == []


def test_interrupted_dry_run(slow):
    kx, disk = slow
    (kx.work / "doc").write_text(waiting(kx, FOUND))
    cp = harness.popen(["cp", str(kx.work / "doc"), str(kx / "dryrun/x.yaml")])
    until_asked(disk)
    cp.send_signal(signal.SIGINT)
    assert cp.wait(timeout=harness.LIMIT) == -signal.SIGINT
    disk.go_on()
    until_made(kx, "x.yaml")


@pytest.mark.parametrize("first", [FOUND, MISSING])
@pytest.mark.parametrize("second", [GOOD, BAD], ids=["good", "bad"])
def test_the_last_dry_run_decides(slow, first, second):
    """If a document is replaced while its dry run is pending, the result of that dry run is dropped: it neither
    changes the file nor becomes an error."""
    kx, disk = slow
    done = later(dry_put, kx, "x.yaml", waiting(kx, first))
    until_asked(disk)
    dry_put(kx, "x.yaml", second)
    for _ in range(2):
        assert is_made(kx, "x.yaml") if second == GOOD else kx.read("dryrun/x.yaml") == BAD
        assert kx.ls("dryrun") == ["x.yaml"] + (["x.yaml.error"] if second == BAD else [])
        disk.go_on()
        done()


def test_written_while_a_dry_run_is_under_way(slow):
    """Readers don't see what a process is writing to a file. A manifest that arrives meanwhile does not change it."""
    kx, disk = slow
    done = later(dry_put, kx, "x.yaml", waiting(kx, FOUND))
    until_asked(disk)
    with open(kx / "dryrun/x.yaml", "w", encoding="utf-8") as f:
        f.write(GOOD)
        f.flush()
        disk.go_on()
        assert done() == ""
        assert "/held/" in kx.read("dryrun/x.yaml") and is_made(kx, "x.yaml")
        assert os.fstat(f.fileno()).st_size == len(GOOD)
    until_made(kx, "x.yaml")
    assert "/held/" not in kx.read("dryrun/x.yaml")


def test_dry_run_by_rename(slow):
    kx, disk = slow
    kx.write("dryrun/tmp", GOOD)
    os.rename(kx / "dryrun/tmp", kx / "dryrun/x.yaml")
    assert kx.ls("dryrun") == ["x.yaml"] and is_made(kx, "x.yaml")
    text = waiting(kx, FOUND)
    kx.write("dryrun/tmp", text)
    assert harness.err_of(os.rename, kx / "dryrun/tmp", kx / "dryrun/x.yaml") == "ETIMEDOUT"
    # The file is renamed before the answer arrives.
    os.rename(kx / "dryrun/tmp", kx / "dryrun/x.yaml")
    assert kx.read("dryrun/x.yaml") == text
    disk.go_on()
    until_made(kx, "x.yaml")
    assert kx.ls("dryrun") == ["x.yaml"]
    # When the answer arrives, no rename waits for it any more, so the file does not change.
    disk.hang("getattr", "/held")
    kx.write("dryrun/tmp", text)
    assert harness.err_of(os.rename, kx / "dryrun/tmp", kx / "dryrun/y.yaml") == "ETIMEDOUT"
    disk.go_on()
    time.sleep(1)
    assert kx.read("dryrun/tmp") == text
    assert kx.ls("dryrun") == ["tmp", "x.yaml"]


def test_removed_while_a_dry_run_is_under_way(slow):
    kx, disk = slow
    done = later(dry_put, kx, "x.yaml", waiting(kx, FOUND))
    until_asked(disk)
    os.remove(kx / "dryrun/x.yaml")
    disk.go_on()
    assert done() == ""
    assert kx.ls("dryrun") == []


@pytest.mark.waits
def test_expiry_of_dry_runs(make_kx, tmp_path):
    """Files in dryrun/ expire after a week, a minute after the start of a mount. One that is open stays."""
    clock = Clock(tmp_path, time.CLOCK_REALTIME)
    kx = make_kx(env=clock.env)
    for name in ("old.yaml", "open.yaml"):
        assert dry_put(kx, name, GOOD) == ""
    assert dry_put(kx, "bad.yaml", BAD) == "EINVAL"
    kx.write("dryrun/scratch", "text")
    kx.end()
    clock.set(8 * 24 * 3600)
    kx.start()
    with open(kx / "dryrun/open.yaml", encoding="utf-8"):
        harness.wait_for(lambda: kx.ls("dryrun") == ["open.yaml"], what="expiry", step=0.5)


# --- Several writers --------------------------------------------------------------------------
# Several processes write one name of submit/ at the same moment. A close returns 0 only if this writer's text was
# launched unchanged, and only once.
#
#     KXFS_TOGETHER_ROUNDS=10000 pytest test_submit_slow.py     the number of rounds
#     pytest test_submit_slow.py --seed N                       repeats the rounds that a failure names

# $T is a file elsewhere that contains the text. SURE: a failure means that the text was not launched. Other tools may
# fail after their close, when another writer has removed the file.
TOOLS = {
    "cp": ("cp $T x.yaml", True),
    "cat >": ("exec cat $T > x.yaml", True),
    "cat >>": ("exec cat $T >> x.yaml", True),
    "printf >": ('printf "%s" "$(cat $T)" > x.yaml; printf "" >&2', False),
    "install": ("install -m 600 $T x.yaml", False),
    "mv": ("cp $T tmp.$$ && mv tmp.$$ x.yaml || { rm -f tmp.$$; exit 1; }", False),
    "mv from elsewhere": ("cp $T $T.own && mv $T.own x.yaml", False),
    "python": (None, True),
}


def told(kx):
    """Return the texts of all launched jobs, in the order of their launches."""
    return [kx.read("jobs", job, "app.yaml") for job in os.listdir(kx / "jobs")]


def write_in_python(path, text):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        for i in range(0, len(text), 700):
            os.write(fd, text[i:i + 700].encode())
    except OSError:
        os.close(fd)
        return 1
    os.close(fd)
    return 0


def begin(kx, gate, tool, text, file):
    """Fork a child that runs TOOL once all other processes have closed GATE. The child keeps only its own end of
    GATE."""
    pid = os.fork()
    if pid:
        return pid
    status = 120
    try:
        os.close(gate[1])
        os.read(gate[0], 1)
        os.close(gate[0])
        os.chdir(kx / "submit")
        null = os.open("/dev/null", os.O_WRONLY)
        os.dup2(null, 2)
        if tool == "python":
            status = write_in_python("x.yaml", text)
        else:
            os.environ["T"] = str(file)
            os.execv("/bin/bash", ["bash", "-c", TOOLS[tool][0]])
    except OSError:
        status = 1
    finally:
        os._exit(status)


def one_round(kx, rng, number):
    """Let two to five writers write at the same time. Return a list of (tool, text, exit status)."""
    gate = os.pipe()
    children = []
    for i in range(rng.randint(2, 5)):
        text = (f"{DOCUMENT}scheduler_args: {{hold: true}}\n# {number}-{i} " + rng.choice("abcdef") * rng.randint(0, 3000)
                + f"\n# {number}-{i} end\n")
        file = kx.work / f"text{i}"
        file.write_text(text)
        tool = rng.choice(list(TOOLS))
        children.append((begin(kx, gate, tool, text, file), tool, text))
    os.close(gate[0])
    os.close(gate[1])
    return [(tool, text, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])) for pid, tool, text in children]


def short(text):
    """Return TEXT with its long runs of equal letters shortened."""
    return re.sub(r"([a-f])\1{9,}", r"\1...", text)


def check(done, launched):
    """Check all rounds: DONE has their writers, LAUNCHED the launched texts."""
    count = collections.Counter(text.rstrip("\n") for text in launched)
    for text in count.keys() - {text.rstrip("\n") for _, text, _ in done}:
        raise AssertionError(f"a mixture was launched: {short(text)!r}")
    for tool, text, status in done:
        n = count[text.rstrip("\n")]
        sure = TOOLS[tool][1]
        assert n == 1 if status == 0 and tool != "printf >" else n <= (0 if status and sure else 1), \
            f"{tool}, exit status {status}: launched {n} times: {short(text)!r}"


def test_who_closes_with_success_has_launched(kx, request, sanitized):
    seed = request.config.getoption("--seed")
    if seed is None:
        seed = time.time_ns() % 1000000
    rounds = int(os.environ.get("KXFS_TOGETHER_ROUNDS", 80 if sanitized else 300))
    print(f"seed {seed}, {rounds} rounds")
    rng = random.Random(seed)
    done = []
    for number in range(rounds):
        if rng.random() < 0.3:
            harness.err_of(os.remove, kx / "submit/x.yaml")
        done += one_round(kx, rng, number)
    check(done, told(kx))
    assert sum(status == 0 for _, _, status in done) >= rounds


# --- sequences in which writers interfere ---


def writer(kx, text, name="x.yaml"):
    """Start a process that has written TEXT and keeps the file open until close_of() is called."""
    script = ("import os, sys\n"
              f"fd = os.open({name!r}, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)\n"
              f"os.write(fd, {text.encode()!r})\n"
              "print('written', flush=True)\n"
              "sys.stdin.readline()\n"
              "try:\n"
              "    os.close(fd)\n"
              "except OSError as e:\n"
              "    print(e.errno)\n")
    p = harness.popen(["python3", "-c", script], cwd=kx / "submit", stdin=-1, stdout=-1, text=True)
    assert p.stdout.readline() == "written\n"
    return p


def close_of(p):
    """Let the process P close its file. Return the message of its errno, or "" on success."""
    code = p.communicate("\n", timeout=harness.LIMIT)[0].strip()
    return os.strerror(int(code)) if code else ""


A, B = (f"{DOCUMENT}# {who}\n" for who in "ab")


@pytest.mark.parametrize("line", ["cat $T > x.yaml", "cat $T >> x.yaml", "cp $T x.yaml"])
def test_both_are_launched(kx, line):
    """Two writers of one name launch two jobs. The name then has the contents that were closed last."""
    (kx.work / "b").write_text(B)
    first = writer(kx, A)
    harness.run(line, cwd=kx / "submit", env={"T": str(kx.work / "b")})
    assert told(kx) == [B] and kx.read("submit/x.yaml") == B
    assert close_of(first) == ""
    assert told(kx) == [B, A] and kx.read("submit/x.yaml") == A
    assert error_of(kx, "x.yaml") is None and job_of(kx, "x.yaml")


@pytest.mark.parametrize("line", ["install $T x.yaml", "rm x.yaml && cp $T x.yaml", "cp $T tmp && mv tmp x.yaml"])
def test_the_first_loses_the_file(kx, line):
    """The name is removed while the first process writes. Its close fails, and the new file of that name is
    launched."""
    (kx.work / "b").write_text(B)
    first = writer(kx, A)
    harness.run(line, cwd=kx / "submit", env={"T": str(kx.work / "b")})
    assert close_of(first) == os.strerror(16)
    assert told(kx) == [B] and kx.read("submit/x.yaml") == B


@pytest.mark.parametrize("line", ["rm x.yaml", "mv x.yaml x.yaml~"])
def test_removed_while_another_writes(kx, line):
    first = writer(kx, A)
    harness.run(line, cwd=kx / "submit")
    assert f"removed or replaced this file while process {first.pid} (python3) was writing it" in error_of(kx, "x.yaml")
    assert close_of(first) == os.strerror(16)
    assert told(kx) == []


def test_opened_before_and_written_after(kx):
    """A process opens the file without truncating it. When it later writes, it changes the contents at that time."""
    submitting.put(kx, "x.yaml", B)
    fd = os.open(kx / "submit/x.yaml", os.O_WRONLY)
    assert close_of(writer(kx, A)) == ""
    os.pwrite(fd, b"# end\n", len(A))
    os.close(fd)
    assert told(kx) == [B, A, A + "# end\n"] and kx.read("submit/x.yaml") == A + "# end\n"


def test_made_before_and_written_after(kx):
    """A process that has created the file writes a new document, no matter what others have written to the file
    meanwhile."""
    fd = os.open(kx / "submit/x.yaml", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    assert close_of(writer(kx, A + "# much longer\n")) == ""
    os.write(fd, B.encode())
    os.close(fd)
    assert told(kx) == [A + "# much longer\n", B] and kx.read("submit/x.yaml") == B


def test_touched_while_another_writes(kx):
    """A process that creates a file and writes nothing does not remove what others write."""
    fd = os.open(kx / "submit/x.yaml", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    assert close_of(writer(kx, A)) == ""
    os.close(fd)
    assert told(kx) == [A] and kx.read("submit/x.yaml") == A
