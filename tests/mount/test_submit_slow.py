# SPDX-License-Identifier: MIT
"""Slow answers to writers, and several writers at the same time."""

import collections
import contextlib
import errno
import os
import random
import re
import signal
import threading
import time

import harness
import pytest
import submitting
from submitting import asking, error_of, job_of, launched, put, slow_binary

# --- Slow answers -----------------------------------------------------------------------------
# submit/ when the backend answers late: waiting, interrupts, deadlines, results that overtake each other, expiry. The
# backend is slow_kxfs.c, which answers when the document requests it.


@pytest.fixture
def make_slow(top):
    made = []

    def make(*args, user=None):
        program = slow_binary()
        if not program.exists():
            pytest.fail(f"{program} is missing: build it first", pytrace=False)
        kx = submitting.Slow(program, top, args=args, user=user)
        made.append(kx)
        return kx.start()

    yield make
    wrong = []
    for kx in made:
        wrong += kx.close()
    wrong += harness.end_marked()
    assert not wrong, "\n".join(wrong)


@pytest.fixture
def kx(make_slow):
    return make_slow()


def later(fn, *args):
    """Run FN(*ARGS) in a thread. Return a function that waits for its result and returns it."""
    result = []
    thread = threading.Thread(target=lambda: result.append(fn(*args)))
    thread.start()

    def join():
        thread.join(harness.LIMIT)
        return result[0]

    return join


def until_asked(kx, name):
    """Wait until the backend has the document of NAME. Its writer then waits in close() or rename()."""
    harness.wait_for(lambda: f"asked: {name}\n" in kx.said(), what=f"the submission of {name}")


def test_close_waits_for_the_result(kx):
    for name, refuse, error in (("x.yaml", "", ""), ("y.yaml", f"refuse {errno.EDQUOT}", "EDQUOT")):
        begun = time.monotonic()
        assert put(kx, name, asking("delay 700", refuse)) == error
        assert time.monotonic() - begun >= 0.6  # timers have a resolution of milliseconds
        assert (job_of(kx, name) is None) == bool(error)


def test_a_waiting_close_stops_nobody(kx):
    done = later(put, kx, "x.yaml", asking("held"))
    until_asked(kx, "x.yaml")
    assert put(kx, "y.yaml", asking()) == ""
    assert "y.yaml" in kx.ls("submit")
    assert kx.read("submit/x.yaml") == asking("held")
    os.rename(kx / "submit/y.yaml", kx / "submit/z.yaml")
    os.remove(kx / "submit/z.yaml")
    assert job_of(kx, "x.yaml") is None
    kx.answer()
    assert done() == ""
    assert launched(kx) == {job_of(kx, "x.yaml"), job_of(kx, "y.yaml")}


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("refuse", ["", f"refuse {errno.EACCES}"])
def test_interrupting_cp_ends_its_waiting_only(kx, sig, refuse):
    (kx.work / "doc").write_text(asking("held", refuse))
    cp = harness.popen(["cp", str(kx.work / "doc"), str(kx / "submit/x.yaml")])
    until_asked(kx, "x.yaml")
    cp.send_signal(sig)
    assert cp.wait(timeout=harness.LIMIT) == -sig
    assert not launched(kx) and error_of(kx, "x.yaml") is None
    kx.answer()
    if refuse:
        harness.wait_for(lambda: error_of(kx, "x.yaml"))
        assert "Permission denied" in error_of(kx, "x.yaml")
        assert not launched(kx)
    else:
        harness.wait_for(lambda: job_of(kx, "x.yaml"))
        assert error_of(kx, "x.yaml") is None
        assert launched(kx) == {job_of(kx, "x.yaml")}


def test_busy_while_it_is_launched(kx):
    read, write = os.pipe()
    fd = os.open(kx / "submit/x.yaml", os.O_WRONLY | os.O_CREAT, 0o644)
    os.write(fd, asking("held").encode())
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            until_asked(kx, "x.yaml")
            os.write(write, harness.err_of(os.write, fd, b"# more\n").encode())
            kx.answer()
        os._exit(0)
    os.close(fd)
    os.waitpid(pid, 0)
    assert os.read(read, 100) == b"EBUSY"
    os.close(read)
    os.close(write)
    assert kx.read("submit/x.yaml") == asking("held")
    submitting.launched_once(kx, "x.yaml")


@pytest.mark.parametrize("first, second, jobs, error", [
    ("", f"refuse {errno.EINVAL}", 1, True),
    (f"refuse {errno.EINVAL}", "", 1, False),
    ("", "", 2, False),
    (f"refuse {errno.EACCES}", f"refuse {errno.EINVAL}", 0, True),
])
def test_the_last_write_decides(kx, first, second, jobs, error):
    """The last write decides, even if the result of an earlier write arrives later."""
    done = later(put, kx, "x.yaml", asking("held", first))
    until_asked(kx, "x.yaml")
    put(kx, "x.yaml", asking(second))
    between = job_of(kx, "x.yaml")
    kx.answer()
    done()
    assert len(launched(kx)) == jobs
    assert bool(error_of(kx, "x.yaml")) == error
    if error:
        assert "Invalid argument" in error_of(kx, "x.yaml")
    if not second:
        assert job_of(kx, "x.yaml") == between
    assert kx.read("submit/x.yaml") == asking(second)


def test_a_launch_goes_with_its_file(kx):
    """A file that is renamed during its launch is not launched again. NAME.job keeps the submitted name."""
    done = later(put, kx, "x.yaml", asking("held"))
    until_asked(kx, "x.yaml")
    os.rename(kx / "submit/x.yaml", kx / "submit/y.yaml")
    kx.answer()
    assert done() == ""
    assert kx.ls("submit") == ["x.yaml.job", "y.yaml"]
    assert len(launched(kx)) == 1


def test_removed_while_it_is_launched(kx):
    done = later(put, kx, "x.yaml", asking("held"))
    until_asked(kx, "x.yaml")
    os.remove(kx / "submit/x.yaml")
    kx.answer()
    assert done() == ""
    assert kx.ls("submit") == ["x.yaml.job"]


def test_rename_waits_and_replaces(kx):
    put(kx, "x.yaml", asking())
    put(kx, "tmp", asking("held"))
    done = later(harness.err_of, os.rename, kx / "submit/tmp", kx / "submit/x.yaml")
    harness.wait_for(lambda: kx.said().count("asked: x.yaml\n") == 2, what="the submission of the other")
    assert kx.read("submit/x.yaml") == asking()
    kx.answer()
    assert done() == ""
    assert kx.read("submit/x.yaml") == asking("held")
    assert kx.ls("submit") == ["x.yaml", "x.yaml.job"]
    assert len(launched(kx)) == 2


def test_rename_has_a_deadline(kx):
    put(kx, "tmp", asking("held"))
    assert harness.err_of(os.rename, kx / "submit/tmp", kx / "submit/x.yaml") == "ETIMEDOUT"
    assert "x.yaml" not in kx.ls("submit")
    # Renaming again does not launch the file twice. The file gets the name, and later the result.
    os.rename(kx / "submit/tmp", kx / "submit/x.yaml")
    kx.answer()
    harness.wait_for(lambda: job_of(kx, "x.yaml"))
    assert kx.ls("submit") == ["x.yaml", "x.yaml.job"]
    assert len(launched(kx)) == 1


def test_a_rename_that_is_late(kx):
    put(kx, "tmp", asking("held"))
    assert harness.err_of(os.rename, kx / "submit/tmp", kx / "submit/x.yaml") == "ETIMEDOUT"
    kx.answer()
    harness.wait_for(lambda: job_of(kx, "x.yaml"))
    os.rename(kx / "submit/tmp", kx / "submit/x.yaml")
    assert kx.ls("submit") == ["x.yaml", "x.yaml.job"]
    assert len(launched(kx)) == 1


def test_close_has_a_deadline(kx):
    begun = time.monotonic()
    assert put(kx, "x.yaml", asking("delay 33000")) == "ETIMEDOUT"
    assert time.monotonic() - begun >= 29.9  # timers have a resolution of milliseconds
    harness.wait_for(lambda: job_of(kx, "x.yaml"))
    assert error_of(kx, "x.yaml") is None


def test_unmounting_answers_who_waits(kx):
    done = later(put, kx, "x.yaml", asking("held"))
    until_asked(kx, "x.yaml")
    assert kx.end() == 0
    assert done() in ("ENOTCONN", "ECONNABORTED")  # at its deadline, it would have been ETIMEDOUT


# --- dryrun/ works the same, but ends with a manifest ---

MADE = "kind: Made\n"  # the manifest that slow_kxfs makes of each document


def until_made(kx, name, text=MADE):
    harness.wait_for(lambda: kx.read("dryrun", name) == text, what=f"the manifest of {name}")


def test_dry_run_waits_for_the_result(kx):
    done = later(harness.err_of, kx.write, "dryrun/x.yaml", asking("held"))
    until_asked(kx, "x.yaml")
    assert kx.read("dryrun/x.yaml") == asking("held")
    kx.answer()
    assert done() == ""
    assert kx.read("dryrun/x.yaml") == MADE
    assert harness.err_of(kx.write, "dryrun/y.yaml", asking("delay 300", f"refuse {errno.EDQUOT}")) == "EDQUOT"
    assert kx.ls("dryrun") == ["x.yaml", "y.yaml", "y.yaml.error"]
    assert kx.ls("jobs") == []


def test_interrupted_dry_run(kx):
    (kx.work / "doc").write_text(asking("held"))
    cp = harness.popen(["cp", str(kx.work / "doc"), str(kx / "dryrun/x.yaml")])
    until_asked(kx, "x.yaml")
    cp.send_signal(signal.SIGINT)
    assert cp.wait(timeout=harness.LIMIT) == -signal.SIGINT
    kx.answer()
    until_made(kx, "x.yaml")


@pytest.mark.parametrize("first", ["", f"refuse {errno.EINVAL}"])
@pytest.mark.parametrize("second", ["", f"refuse {errno.EACCES}"])
def test_the_last_dry_run_decides(kx, first, second):
    """If a document is replaced while its dry run is pending, the result of that dry run is dropped: it neither
    changes the file nor becomes an error."""
    done = later(harness.err_of, kx.write, "dryrun/x.yaml", asking("held", first))
    until_asked(kx, "x.yaml")
    harness.err_of(kx.write, "dryrun/x.yaml", asking("newer", second))
    for _ in range(2):
        assert kx.read("dryrun/x.yaml") == (asking("newer", second) if second else MADE)
        assert kx.ls("dryrun") == ["x.yaml"] + (["x.yaml.error"] if second else [])
        kx.answer()
        done()


def test_written_while_a_dry_run_is_under_way(kx):
    """Readers don't see what a process is writing to a file. A manifest that arrives meanwhile does not change it."""
    done = later(harness.err_of, kx.write, "dryrun/x.yaml", asking("held"))
    until_asked(kx, "x.yaml")
    with open(kx / "dryrun/x.yaml", "w", encoding="utf-8") as f:
        f.write(asking("unfinished"))
        f.flush()
        kx.answer()
        assert done() == ""
        assert kx.read("dryrun/x.yaml") == MADE
        assert os.fstat(f.fileno()).st_size == len(asking("unfinished"))
    until_made(kx, "x.yaml")


def test_dry_run_by_rename(kx):
    kx.write("dryrun/tmp", asking("delay 100"))  # much shorter than the deadline of a rename
    os.rename(kx / "dryrun/tmp", kx / "dryrun/x.yaml")
    assert kx.ls("dryrun") == ["x.yaml"]
    assert kx.read("dryrun/x.yaml") == MADE
    kx.write("dryrun/tmp", asking("held"))
    assert harness.err_of(os.rename, kx / "dryrun/tmp", kx / "dryrun/x.yaml") == "ETIMEDOUT"
    # The file is renamed before the answer arrives.
    os.rename(kx / "dryrun/tmp", kx / "dryrun/x.yaml")
    assert kx.read("dryrun/x.yaml") == asking("held")
    kx.answer()
    until_made(kx, "x.yaml")
    assert kx.ls("dryrun") == ["x.yaml"]
    # When the answer arrives, no rename waits for it any more, so the file does not change.
    kx.write("dryrun/tmp", asking("held"))
    assert harness.err_of(os.rename, kx / "dryrun/tmp", kx / "dryrun/y.yaml") == "ETIMEDOUT"
    kx.answer()
    time.sleep(1)
    assert kx.read("dryrun/tmp") == asking("held")
    assert kx.ls("dryrun") == ["tmp", "x.yaml"]


def test_removed_while_a_dry_run_is_under_way(kx):
    done = later(harness.err_of, kx.write, "dryrun/x.yaml", asking("held"))
    until_asked(kx, "x.yaml")
    os.remove(kx / "dryrun/x.yaml")
    kx.answer()
    assert done() == ""
    assert kx.ls("dryrun") == []


def test_expiry_of_dry_runs(kx):
    kx.write("dryrun/old.yaml", asking())
    kx.write("dryrun/open.yaml", asking())
    kx.write("dryrun/scratch", "text")
    assert harness.err_of(kx.write, "dryrun/bad.yaml", "bad") == "EINVAL"

    def expired():
        os.kill(kx.pid, signal.SIGWINCH)
        return kx.ls("dryrun") == ["open.yaml"]

    with open(kx / "dryrun/open.yaml", encoding="utf-8") as f:
        harness.wait_for(expired, what="expiry")
        assert f.read() == MADE


def test_expiry(kx):
    """A file expires with the job that was launched from it, unless a process has it open or it was changed since
    then."""
    for name, doc in (("old.yaml", asking()), ("running.yaml", asking("running")),
                      ("changed.yaml", asking()), ("open.yaml", asking())):
        assert put(kx, name, doc) == ""
    put(kx, "changed.yaml", asking(f"refuse {errno.EINVAL}"))
    put(kx, "gone.yaml", asking())
    os.remove(kx / "submit/gone.yaml")
    put(kx, "bad.yaml", "bad")
    put(kx, "scratch", "text")
    stay = ["bad.yaml", "bad.yaml.error", "changed.yaml", "changed.yaml.error", "open.yaml", "running.yaml",
            "running.yaml.job", "scratch", "scratch.error"]

    def expired():
        # Repeat the signal, because close() returns before kxfs receives the RELEASE of the file.
        os.kill(kx.pid, signal.SIGWINCH)
        return kx.ls("submit") == stay

    with open(kx / "submit/open.yaml", encoding="utf-8") as f:
        harness.wait_for(expired, what="expiry")
        assert f.read() == asking()
    assert kx.read("submit/changed.yaml")


# --- several users ---


def as_user(line, cwd, **kwargs):
    return harness.run(line, user=harness.USER, cwd=cwd, **kwargs)


def test_files_belong_to_who_made_them(make_slow):
    kx = make_slow("allow_other")
    kx.mnt.parent.chmod(0o755)
    (kx.work / "doc").write_text(asking())
    kx.work.chmod(0o755)
    sub = kx / "submit"
    as_user(f"cp {kx.work}/doc x.yaml && echo bad | tee y.yaml", cwd=sub, check=False)
    uid = harness.pwd.getpwnam(harness.USER).pw_uid
    for name in kx.ls("submit"):
        assert os.lstat(sub / name).st_uid == uid, name
    assert kx.ls("submit") == ["x.yaml", "x.yaml.job", "y.yaml", "y.yaml.error"]
    put(kx, "root.yaml", asking())
    os.chmod(sub / "root.yaml", 0o600)
    for line in ("rm -f root.yaml", "rm -f root.yaml.job", "cat root.yaml", "echo > root.yaml",
                 "mv -f y.yaml root.yaml"):
        p = as_user(line, cwd=sub, check=False)
        assert p.returncode != 0, line
        assert "ermission denied" in p.stderr or "not permitted" in p.stderr
    as_user("rm y.yaml.error x.yaml.job", cwd=sub)
    kx.restart()
    assert os.lstat(sub / "x.yaml").st_uid == os.lstat(sub / "y.yaml").st_uid == uid
    as_user("rm x.yaml", cwd=sub)
    assert kx.ls("submit") == ["root.yaml", "y.yaml"]


def test_writers_that_can_not_be_looked_at(make_slow):
    """If kxfs has no permission to inspect a writer's descriptors, it decides at each close whether
    to launch the file."""
    kx = make_slow(user=harness.USER)
    # prctl(PR_SET_DUMPABLE, 0): /proc/PID of this process belongs to root.
    script = ("import ctypes, os\n"
              "ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n"
              "for name, text in (('x.yaml', '%s'), ('y.yaml', 'bad\\n')):\n"
              "    fd = os.open(name, os.O_WRONLY | os.O_CREAT, 0o644)\n"
              "    os.write(fd, text.encode())\n"
              "    try:\n"
              "        os.close(fd)\n"
              "        print(name, 'launched')\n"
              "    except OSError:\n"
              "        print(name, 'refused')\n" % asking().replace("\n", "\\n"))
    (kx.work / "script").write_text(script)
    (kx.work / "script").chmod(0o644)
    assert kx.call(f"cd submit && python3 {kx.work}/script").stdout == "x.yaml launched\ny.yaml refused\n"
    want = ["x.yaml", "x.yaml.job", "y.yaml", "y.yaml.error"]
    harness.wait_for(lambda: kx.call("ls submit").stdout.split() == want, what="the verdicts")


# --- Several writers --------------------------------------------------------------------------
# Several processes write one name of submit/ at the same moment. A close returns 0 only if this writer's text was
# launched unchanged, and only once. The backend is slow_kxfs.c, which prints what it launches.
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
    return [bytes.fromhex(text).decode() for text in re.findall(r"^launched: ([0-9a-f]+)$", kx.said(), re.M)]


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
        text = (f"name: app\nroles: []\n# tell {number}-{i} " + rng.choice("abcdef") * rng.randint(0, 3000) + "\n"
                + f"# {number}-{i} end\n")
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
    known = {text for _, text, _ in done} | {text.rstrip("\n") for _, text, _ in done}
    count = collections.Counter()
    before = {""}
    for text in launched:
        # A launched text may end with the text of a writer that appends. Before that, it must have
        # the earlier contents of the file: none, or contents that were launched before.
        parts = [(text[:i], text[i:]) for i in [0, *(m.start() for m in re.finditer("name: app", text))]]
        whole = [own for rest, own in parts if own in known and rest in before]
        assert whole, f"a mixture was launched: {short(text)!r}"
        before |= {text}
        count[whole[0].rstrip("\n")] += 1
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


A, B = (submitting.asking(f"tell {who}") for who in "ab")


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


def test_a_writer_that_is_killed_is_in_nobodys_way(kx):
    first = writer(kx, A)
    harness.kill(first.pid, signal.SIGKILL)
    first.communicate()
    harness.wait_for(lambda: "a signal ended" in (error_of(kx, "x.yaml") or ""), what="that it was killed")
    assert submitting.put(kx, "x.yaml", B) == ""
    assert told(kx) == [B]
