# SPDX-License-Identifier: MIT
"""submit/ when the answer takes long: waiting, interrupts, deadlines, results that overtake each other, expiry. On
slow_kxfs.c, which answers when the document requests."""

import contextlib
import errno
import os
import signal
import threading
import time

import harness
import pytest
import submitting
from submitting import asking, error_of, job_of, launched, put, slow_binary


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
    """Run FN in a thread. Return a function that returns its result."""
    result = []
    thread = threading.Thread(target=lambda: result.append(fn(*args)))
    thread.start()

    def join():
        thread.join(harness.LIMIT)
        return result[0]

    return join


def until_asked(kx, name):
    """The backend has the document now: its writer waits in close() or rename()."""
    harness.wait_for(lambda: f"asked: {name}\n" in kx.said(), what=f"the submission of {name}")


def test_close_waits_for_the_result(kx):
    for name, refuse, error in (("x.yaml", "", ""), ("y.yaml", f"refuse {errno.EDQUOT}", "EDQUOT")):
        begun = time.monotonic()
        assert put(kx, name, asking("delay 700", refuse)) == error
        assert time.monotonic() - begun >= 0.6  # timers are of whole milliseconds, roughly
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
    """Also if the result of the previous one arrives later."""
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
    """A file that is renamed during its launch is not launched again. NAME.job keeps the name that was submitted."""
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
    # A retry does not launch it twice: the file gets the name, and then the result.
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
    assert time.monotonic() - begun >= 29.9  # timers are of whole milliseconds, roughly
    harness.wait_for(lambda: job_of(kx, "x.yaml"))
    assert error_of(kx, "x.yaml") is None


def test_unmounting_answers_who_waits(kx):
    done = later(put, kx, "x.yaml", asking("held"))
    until_asked(kx, "x.yaml")
    assert kx.end() == 0
    assert done() in ("ENOTCONN", "ECONNABORTED")  # at its deadline it would be ETIMEDOUT


# --- dryrun/ takes the same path, with another end ---

MADE = "kind: Made\n"  # what slow_kxfs makes of anything


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
    """A document that was replaced while its answer was pending neither changes the file nor has an error."""
    done = later(harness.err_of, kx.write, "dryrun/x.yaml", asking("held", first))
    until_asked(kx, "x.yaml")
    harness.err_of(kx.write, "dryrun/x.yaml", asking("newer", second))
    for _ in range(2):
        assert kx.read("dryrun/x.yaml") == (asking("newer", second) if second else MADE)
        assert kx.ls("dryrun") == ["x.yaml"] + (["x.yaml.error"] if second else [])
        kx.answer()
        done()


def test_written_while_a_dry_run_is_under_way(kx):
    """Unclosed contents are not shown, and a manifest made meanwhile does not change them."""
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
    kx.write("dryrun/tmp", asking("delay 100"))  # far from the time that a rename has
    os.rename(kx / "dryrun/tmp", kx / "dryrun/x.yaml")
    assert kx.ls("dryrun") == ["x.yaml"]
    assert kx.read("dryrun/x.yaml") == MADE
    kx.write("dryrun/tmp", asking("held"))
    assert harness.err_of(os.rename, kx / "dryrun/tmp", kx / "dryrun/x.yaml") == "ETIMEDOUT"
    # renamed before the answer arrives
    os.rename(kx / "dryrun/tmp", kx / "dryrun/x.yaml")
    assert kx.read("dryrun/x.yaml") == asking("held")
    kx.answer()
    until_made(kx, "x.yaml")
    assert kx.ls("dryrun") == ["x.yaml"]
    # No file waits for the answer when it arrives, so the file remains unchanged.
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
    """A file expires with the job that was launched from it, if nobody has it open and it is not written since."""
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
        # The signal is repeated, since close() returns before kxfs has the release of the file.
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
    """A daemon that may not see a writer's descriptors decides at each close."""
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
