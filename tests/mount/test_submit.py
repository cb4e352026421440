# SPDX-License-Identifier: MIT
"""The rules of submit/: what users can write, rename and remove there, what kxfs refuses and how, and what a remount
keeps."""

import contextlib
import ctypes
import errno
import os
import signal
import stat
import time

import harness
import pytest
from harness import app, wait_for
from submitting import BAD, GOOD, error_of, job_of, launched, launched_once, put, refused

MIB = 1 << 20
BIG = GOOD + "#" * (MIB - len(GOOD) - 1) + "\n"


def opened(kx, name, flags=os.O_WRONLY | os.O_CREAT):
    return os.open(kx / "submit" / name, flags, 0o644)


# --- accepted and refused ---


DRY_RUN = """{"scheduler": "%s", "cfg": {"log_dir": null, "prepend_cwd": false, "auto_set_cuda_visible_devices": false},
 "app": {"name": "shout", "roles": [{"name": "sh", "image": "/tmp", "min_replicas": null, "entrypoint": "sh",
  "args": ["-c", "echo ${app_id}"], "env": {"TORCHX_JOB_ID": "local_cwd://torchx/${app_id}"}, "num_replicas": 1,
  "max_retries": 0, "retry_policy": "APPLICATION", "resource": {"cpu": -1, "gpu": -1, "memMB": -1, "capabilities": {},
  "devices": {}, "tags": {}}, "port_map": {}, "metadata": {}, "mounts": [], "workspace": null, "overrides": {}}],
  "metadata": {}}, "request": "what TorchX would do"}
"""


def test_dry_run_of_torchx(kx):
    """kxfs accepts the output of torchx run --dryrun --json unchanged."""
    job = kx.submit(DRY_RUN % "local_cwd")
    job.finish()
    assert job.log("sh-0").decode() == f"{job.id}\n"
    assert job.read("app.yaml") == DRY_RUN % "local_cwd"
    assert harness.err_of(kx.write, "submit/x.json", DRY_RUN % "kubernetes") == "EINVAL"
    assert "submit the file on a mount of volcano" in kx.read("submit", "x.json.error")
    assert harness.err_of(kx.write, "submit/y.json", DRY_RUN % "slurm") == "EINVAL"
    assert 'y.json:1:15: scheduler: there is no scheduler "slurm"' in kx.read("submit", "y.json.error")


def test_accepted(kx):
    assert put(kx, "x.yaml", GOOD) == ""
    job = job_of(kx, "x.yaml")
    assert os.readlink(kx / "submit/x.yaml.job") == f"../jobs/{job}"
    assert (kx / f"submit/x.yaml.job/state").read_text().strip()
    assert kx.read("submit/x.yaml") == GOOD
    assert kx.read(f"jobs/{job}/app.yaml") == GOOD


def test_refused(kx):
    assert put(kx, "x.yaml", BAD) == "EINVAL"
    refused(kx, "x.yaml", "x.yaml:1:")
    assert "nonsense" in error_of(kx, "x.yaml")
    assert kx.read("submit/x.yaml") == BAD
    assert error_of(kx, "x.yaml").endswith("\n")


@pytest.mark.parametrize("name", ["x.yaml", "x.yml", "x.json", "a b.yaml", "ä.yaml", "-.yaml",
                                  "x.job.yaml", "x.yaml.error.yaml", "n" * 244 + ".yaml", "app.YAML", "app.Yml", "app.JSON"])
def test_names_that_submit(kx, name):
    assert put(kx, name, GOOD) == ""
    launched_once(kx, name)


@pytest.mark.parametrize("name", [".x.yaml", "x.tmp", "x.yaml~", "4913", ".x.yaml.swp", "x.yaml.job~", "n" * 255, "#app#",
                                  "app.yaml.Xk3f9d", "sedX3k9dw", "tmp.aX3k9dw"])
def test_names_of_editors(kx, name):
    """Temporary names of editors and tools do not submit, and kxfs does not report that as a mistake."""
    assert put(kx, name, GOOD) == ""
    assert not launched(kx)
    assert kx.ls("submit") == [name] and "not submitted" not in kx.read(".kxfs", "log")


@pytest.mark.parametrize("name, error", [
    ("x.yaml.job", "EPERM"),
    ("x.yaml.error", "EPERM"),
    ("x.json.error", "EPERM"),
    ("n" * 245 + ".yaml", "ENAMETOOLONG"),
    ("n" * 256, "ENAMETOOLONG"),
    ("a\nb.yaml", "EINVAL"),
    ("a\x1b.yaml", "EINVAL"),
    (b"a\xff.yaml", "EINVAL"),
    ("...", "EINVAL"),
])
def test_names_that_are_refused(kx, name, error):
    path = os.path.join(os.fsencode(kx.mnt), b"submit", os.fsencode(name))
    assert harness.err_of(os.open, path, os.O_WRONLY | os.O_CREAT, 0o644) == error
    assert put(kx, "tmp", GOOD) == ""
    assert harness.err_of(os.rename, kx / "submit/tmp", path) == error
    assert kx.ls("submit") == ["tmp"]


def test_what_can_not_be_made(kx):
    put(kx, "a", GOOD)
    sub = kx / "submit"
    assert harness.err_of(os.mkdir, sub / "d") == "EPERM"
    assert harness.err_of(os.symlink, "a", sub / "x.yaml") == "EPERM"
    assert harness.err_of(os.link, sub / "a", sub / "x.yaml") == "EPERM"
    assert harness.err_of(os.mkfifo, sub / "x.yaml") == "EPERM"
    assert harness.err_of(os.rmdir, sub) == "EPERM"
    assert harness.err_of(os.rename, sub / "a", kx / "jobs/a") == "EPERM"
    assert harness.err_of(os.rename, sub / "a", kx / "a") == "EPERM"
    assert kx.ls("submit") == ["a", "a.error"]


# --- results as files ---


def test_results_can_only_be_read_and_removed(kx):
    put(kx, "x.yaml", GOOD)
    put(kx, "x.yaml", BAD)
    sub = kx / "submit"
    assert harness.err_of(open, sub / "x.yaml.error", "w") == "EPERM"
    assert harness.err_of(open, sub / "x.yaml.error", "a") == "EPERM"
    assert harness.err_of(os.truncate, sub / "x.yaml.error", 0) == "EPERM"
    assert harness.err_of(os.rename, sub / "x.yaml.error", sub / "y") == "EPERM"
    assert harness.err_of(os.rename, sub / "x.yaml.job", sub / "y") == "EPERM"
    assert kx.call("rm -r submit/x.yaml.error submit/x.yaml.job").stdout == ""
    assert kx.ls("submit") == ["x.yaml"]
    assert put(kx, "x.yaml", BAD) == "EINVAL"
    assert kx.ls("submit") == ["x.yaml", "x.yaml.error"]


def test_an_error_is_gone_at_once(kx):
    """When the file is accepted, NAME.error is gone immediately, although the kernel may still cache its attributes."""
    for _ in range(5):
        put(kx, "x.yaml", BAD)
        assert (kx / "submit/x.yaml.error").stat().st_size == len(error_of(kx, "x.yaml").encode())
        put(kx, "x.yaml", GOOD)
        assert not (kx / "submit/x.yaml.error").exists()
        assert (kx / "submit/x.yaml.job").is_dir()


# --- writing ---


def test_a_refused_handle_may_write_again(kx):
    fd = opened(kx, "x.yaml", os.O_RDWR | os.O_CREAT)
    os.write(fd, BAD.encode())
    ready, closed = os.pipe()
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            os.close(closed)
            os.read(ready, 1)
            os.ftruncate(fd, 0)
            os.pwrite(fd, GOOD.encode(), 0)
        os._exit(0)
    assert harness.err_of(os.close, fd) == "EINVAL"
    os.close(closed)
    os.close(ready)
    os.waitpid(pid, 0)
    # The child never calls close(), so nothing waits for its result, which may arrive at any time.
    harness.wait_for(lambda: error_of(kx, "x.yaml") is None, what="the second result")
    launched_once(kx, "x.yaml")
    assert kx.read("submit/x.yaml") == GOOD


def test_emptied_by_one_and_written_by_another(kx):
    """A shell does `: > x.yaml`, and later >> x.yaml. Meanwhile a child still has a descriptor of the first open.
    The end of the child changes nothing."""
    fd = opened(kx, "x.yaml", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    pid = os.fork()
    if pid == 0:
        signal.pause()
    try:
        os.close(fd)
        fd = opened(kx, "x.yaml", os.O_WRONLY | os.O_APPEND)
        os.write(fd, GOOD.encode())
        os.close(fd)
        launched_once(kx, "x.yaml")
    finally:
        harness.kill(pid)
        os.waitpid(pid, 0)
    kx.restart()
    assert kx.read("submit/x.yaml") == GOOD
    launched_once(kx, "x.yaml")


def test_emptied_without_a_close(kx):
    """A process truncates the file, and an exec closes it. Nothing is launched. The file is empty, even after a
    remount."""
    put(kx, "x.yaml", GOOD)
    harness.run(["python3", "-c", "import os\n"
                 "os.open('x.yaml', os.O_WRONLY | os.O_TRUNC)\n"
                 "os.execv('/bin/true', ['true'])\n"], cwd=kx / "submit")
    wait_for(lambda: kx.read("submit/x.yaml") == "", what="the end of the content")
    kx.restart()
    assert kx.read("submit/x.yaml") == ""
    launched_once(kx, "x.yaml")


def test_truncated_before_the_close(kx):
    """A process empties and resizes a file through its descriptor. Until the close, others see the old contents, also
    if these were only on disk."""
    put(kx, "x.yaml", GOOD)
    kx.restart()
    fd = opened(kx, "x.yaml", os.O_WRONLY | os.O_TRUNC)
    os.ftruncate(fd, 5)
    assert kx.read("submit/x.yaml") == GOOD
    os.pwrite(fd, GOOD.encode(), 0)
    os.close(fd)
    assert kx.read("submit/x.yaml") == GOOD


def test_readers_and_writers_together(kx):
    """A reader of a file sees the contents that were closed last. A writer sees the contents that it is writing."""
    fd = opened(kx, "x.yaml", os.O_RDWR | os.O_CREAT)
    os.write(fd, GOOD[:10].encode())
    assert kx.read("submit/x.yaml") == ""
    assert os.fstat(fd).st_size == 10
    assert os.pread(fd, 100, 0) == GOOD[:10].encode()
    os.fsync(fd)
    with open(kx / "submit/x.yaml", encoding="utf-8") as f:
        assert f.read() == GOOD[:10]
        os.write(fd, GOOD[10:].encode())
        assert f.read() == ""
        os.close(fd)
        assert f.read() == GOOD[10:]
    launched_once(kx, "x.yaml")


def test_scratch_is_shared(kx):
    """Processes that have the same scratch file open change the same bytes, as vim expects of a swap file."""
    with open(kx / "submit/.x.yaml.swp", "w+b", buffering=0) as a, open(kx / "submit/.x.yaml.swp", "r+b", buffering=0) as b:
        a.write(b"one")
        assert b.read() == b"one"
        b.write(b" two")
        assert os.pread(a.fileno(), 100, 0) == b"one two"
    assert kx.ls("submit") == [".x.yaml.swp"] and not launched(kx)


def test_end_of_what_it_wrote(kx):
    """For a writer, the end of a file is the end of its own contents."""
    a = opened(kx, "x.yaml")
    os.write(a, GOOD.encode())
    b = opened(kx, "x.yaml")
    os.write(b, b"#\n")
    assert os.lseek(a, 0, os.SEEK_END) == len(GOOD)
    assert os.lseek(b, 0, os.SEEK_END) == 2
    os.write(a, b"# end\n")
    os.close(a)
    assert kx.read("submit/x.yaml") == GOOD + "# end\n"
    assert harness.err_of(os.close, b) == "EINVAL"
    assert kx.read("submit/x.yaml") == "#\n"
    assert len(launched(kx)) == 1


def test_two_handles_of_one_process(kx):
    """Each open file is a submission of its own, even if one process has two."""
    a = opened(kx, "x.yaml")
    b = opened(kx, "x.yaml", os.O_WRONLY | os.O_APPEND)
    os.write(a, GOOD[:20].encode())
    assert harness.err_of(os.close, a) == "EINVAL"
    os.write(b, GOOD[20:].encode())
    os.close(b)
    assert kx.read("submit/x.yaml") == GOOD
    assert len(launched(kx)) == 1


def test_removed_while_it_is_written(kx):
    fd = opened(kx, "x.yaml", os.O_RDWR | os.O_CREAT)
    os.write(fd, GOOD.encode())
    os.remove(kx / "submit/x.yaml")
    assert os.pread(fd, 5, 0) == GOOD[:5].encode()
    assert os.fstat(fd).st_size == len(GOOD)
    os.close(fd)
    assert not launched(kx)
    assert kx.ls("submit") == []


def test_written_anew_while_the_old_one_is_read(kx):
    put(kx, "x.yaml", GOOD)
    with open(kx / "submit/x.yaml", encoding="utf-8") as f:
        put(kx, "tmp", BAD)
        harness.err_of(os.rename, kx / "submit/tmp", kx / "submit/x.yaml")
        put(kx, "tmp", GOOD + "# new\n")
        os.rename(kx / "submit/tmp", kx / "submit/x.yaml")
        assert f.read() == GOOD
    assert kx.read("submit/x.yaml") == GOOD + "# new\n"


def test_written_anew_while_the_old_one_is_open(kx):
    """A process removes a file that it has open for writing. Then a new file of that name is
    written. The close of the new file gets its own result."""
    fd = opened(kx, "x.yaml")
    os.remove(kx / "submit/x.yaml")
    assert put(kx, "x.yaml", BAD) == "EINVAL"
    os.close(fd)
    refused(kx, "x.yaml")


def test_attributes(kx):
    put(kx, "x.yaml", GOOD)
    path = kx / "submit/x.yaml"
    ino = path.stat().st_ino
    os.chmod(path, 0o440)
    assert harness.permissions(path) == 0o640  # the owner can always write, so that rm does not ask
    os.utime(path, (1000, 2000))
    assert path.stat().st_mtime == 2000
    assert path.stat().st_atime == 1000
    assert harness.err_of(os.truncate, path, 5) == "EPERM"  # ftruncate works
    assert kx.read("submit/x.yaml") == GOOD
    os.truncate(path, 0)
    assert path.stat().st_size == 0
    os.rename(path, kx / "submit/y")
    assert (kx / "submit/y").stat().st_ino == ino
    assert len(launched(kx)) == 1


def test_full_memory(kx):
    """While open files have 256 MiB in memory, no other file can be opened. But files can still be
    truncated, and their modes and times can be changed."""
    put(kx, "y.yaml", GOOD)
    path = kx / "submit/y.yaml"
    fds = [opened(kx, "x.yaml") for _ in range(256)]
    for fd in fds:
        os.ftruncate(fd, 1 << 20)
    assert harness.err_of(os.open, path, os.O_RDONLY) == "ENFILE"
    os.chmod(path, 0o600)
    os.utime(path, (1000, 2000))
    os.truncate(path, 0)
    assert (harness.permissions(path), path.stat().st_mtime > 2000, path.stat().st_size) == (0o600, True, 0)
    for fd in fds:
        os.ftruncate(fd, 0)
        os.close(fd)
    assert path.read_text() == ""


def test_flags(kx):
    assert put(kx, "a", "12345") == ""
    assert harness.err_of(opened, kx, "a", os.O_WRONLY | os.O_CREAT | os.O_EXCL) == "EEXIST"
    fd = opened(kx, "a", os.O_WRONLY | os.O_APPEND)
    other = opened(kx, "a", os.O_WRONLY | os.O_APPEND)
    os.write(fd, b"67")
    os.write(other, b"89")
    os.write(fd, b"0")
    os.fsync(fd)
    os.close(fd)
    os.close(other)
    assert kx.read("submit/a") == "1234567890"
    os.close(opened(kx, "a", os.O_WRONLY | os.O_TRUNC))
    assert kx.read("submit/a") == ""


# --- bounds ---


@pytest.mark.parametrize("renamed", [False, True])
def test_a_file_of_the_greatest_size(kx, renamed):
    assert len(BIG) == MIB
    if renamed:
        assert put(kx, "scratch", BIG) == ""
        os.rename(kx / "submit/scratch", kx / "submit/x.yaml")
    else:
        assert put(kx, "x.yaml", BIG) == ""
    launched_once(kx, "x.yaml")
    assert kx.read("submit/x.yaml") == BIG


@pytest.mark.parametrize("tool", ["cp $DOC x.yaml", "cat $DOC > x.yaml", "cp $DOC t && mv t x.yaml",
                                  "dd if=$DOC of=x.yaml bs=1000 conv=notrunc,noerror 2>&1"])
def test_too_big(kx, tool):
    (kx.work / "doc").write_text(BIG + "\n")
    p = harness.run(tool, check=False, cwd=kx / "submit", env={"DOC": str(kx.work / "doc")})
    assert p.returncode != 0
    assert "too large" in p.stderr + p.stdout
    refused(kx, "x.yaml", str(MIB))
    left = kx.read("submit/x.yaml") if "x.yaml" in kx.ls("submit") else None
    kx.restart()
    assert left == (kx.read("submit/x.yaml") if "x.yaml" in kx.ls("submit") else None)


def test_a_failed_write_is_never_launched(kx):
    """If a write() has failed, the document is never launched, even if the writer ignores the error."""
    fd = opened(kx, "x.yaml")
    os.write(fd, GOOD.encode())
    assert harness.err_of(os.pwrite, fd, b"#", 2 * MIB) == "EFBIG"
    os.write(fd, b"\n")
    assert harness.err_of(os.close, fd) == "EFBIG"
    refused(kx, "x.yaml", str(MIB))
    assert put(kx, "x.yaml", GOOD) == ""
    launched_once(kx, "x.yaml")


def test_scratch_files_are_bounded(kx):
    block = b"x" * MIB
    fd = opened(kx, "big")
    for _ in range(4):
        assert os.write(fd, block) == MIB
    assert harness.err_of(os.write, fd, b"x") == "ENOSPC"
    os.close(fd)
    for i in range(15):
        assert put(kx, f"big{i}", block * 4) == ""
    assert put(kx, "more", "x") == "ENOSPC"
    # Files that submit have a limit of their own.
    assert put(kx, "x.yaml", GOOD) == ""
    os.remove(kx / "submit/big3")
    assert put(kx, "more", "x") == ""
    kx.restart()
    assert put(kx, "even-more", block * 4) == "ENOSPC"
    kx.call("rm submit/big*")
    assert put(kx, "even-more", block * 4) == ""


# --- renaming ---


def test_renaming_launches_once(kx):
    put(kx, "x.tmp", GOOD)
    os.rename(kx / "submit/x.tmp", kx / "submit/x.yaml")
    launched_once(kx, "x.yaml")
    job = job_of(kx, "x.yaml")
    # A file that was launched is not launched again under another name. NAME.job keeps the submitted name.
    os.rename(kx / "submit/x.yaml", kx / "submit/y.yaml")
    assert kx.ls("submit") == ["x.yaml.job", "y.yaml"]
    assert job_of(kx, "x.yaml") == job
    # The file is not launched again after it had a name that does not submit, nor after a crash.
    os.rename(kx / "submit/y.yaml", kx / "submit/y.bak")
    put(kx, "new.tmp", GOOD + "# new\n")
    kx.restart(signal.SIGKILL)
    os.rename(kx / "submit/y.bak", kx / "submit/z.yaml")
    assert launched(kx) == {job}
    # Contents that were never launched are launched after a crash, too.
    os.rename(kx / "submit/new.tmp", kx / "submit/new.yaml")
    assert launched(kx) == {job, job_of(kx, "new.yaml")}
    # A copy of the file is a new submission.
    kx.call("cp submit/z.yaml submit/copy.yaml")
    assert launched(kx) == {job, job_of(kx, "new.yaml"), job_of(kx, "copy.yaml")}


def test_renaming_while_it_is_written(kx):
    """A file that is renamed while a process writes it is launched at the close, under the new name."""
    fd = opened(kx, "tmp")
    os.write(fd, GOOD[:9].encode())
    os.rename(kx / "submit/tmp", kx / "submit/x.yaml")
    assert not launched(kx)
    os.write(fd, GOOD[9:].encode())
    os.close(fd)
    launched_once(kx, "x.yaml")


def test_replacing_a_file_by_one_that_is_still_open(kx):
    """A file that was never closed replaces another one. Its close launches it under the new name, and a remount shows
    its contents."""
    put(kx, "x.yaml", BAD)
    fd = opened(kx, "tmp.yaml")
    os.write(fd, GOOD.encode())
    os.replace(kx / "submit/tmp.yaml", kx / "submit/x.yaml")
    os.close(fd)
    launched_once(kx, "x.yaml")
    kx.restart()
    assert kx.read("submit/x.yaml") == GOOD


def test_renaming_away_while_it_is_written(kx):
    fd = opened(kx, "x.yaml")
    os.write(fd, GOOD.encode())
    os.rename(kx / "submit/x.yaml", kx / "submit/tmp")
    os.close(fd)
    assert not launched(kx)


def test_renaming_to_and_fro(kx):
    put(kx, "a", "1")
    put(kx, "b", "2")
    os.rename(kx / "submit/a", kx / "submit/b")
    assert kx.read("submit/b") == "1"
    assert kx.ls("submit") == ["b", "b.error"]
    put(kx, "c", "3")
    libc = ctypes.CDLL(None, use_errno=True)
    for flag, error in ((1, "EEXIST"), (2, "EINVAL")):  # RENAME_NOREPLACE, RENAME_EXCHANGE
        code = libc.renameat2(-100, bytes(kx / "submit/b"), -100, bytes(kx / "submit/c"), flag)
        assert (code, errno.errorcode[ctypes.get_errno()]) == (-1, error)
    assert (kx.read("submit/b"), kx.read("submit/c")) == ("1", "3")


# --- many, and later ---


@pytest.mark.parametrize("tool", ["cp $DOC", "rsync $DOC", "install $DOC"])
def test_side_by_side(kx, tool):
    n = 100 if tool.startswith("cp") else 40
    (kx.work / "doc").write_text(GOOD)
    line = f"for i in $(seq {n}); do {tool} $i.yaml & done; for j in $(jobs -p); do wait $j || exit 1; done"
    harness.run(line, cwd=kx / "submit", env={"DOC": str(kx.work / "doc")})
    jobs = {job_of(kx, f"{i}.yaml") for i in range(1, n + 1)}
    assert len(jobs) == n
    assert launched(kx) == jobs
    assert not [name for name in kx.ls("submit") if name.endswith(".error")]


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGKILL], ids=lambda s: s.name)
def test_remount(kx, sig):
    """After an end or a crash, everything is as before, and nothing is launched again."""
    put(kx, "x.yaml", GOOD)
    put(kx, "bad.yaml", BAD)
    put(kx, "scratch", "text")
    os.utime(kx / "submit/scratch", (1, 2))
    os.chmod(kx / "submit/scratch", 0o600)
    before = {name: kx.read("submit", name) for name in ("x.yaml", "bad.yaml", "scratch")}
    link = os.readlink(kx / "submit/x.yaml.job")
    jobs = launched(kx)
    time.sleep(2)  # kxfs saves modes and times within a second
    kx.restart(sig)
    assert {name: kx.read("submit", name) for name in before} == before
    assert kx.ls("submit") == sorted([*before, "x.yaml.job"])  # errors are dropped when the mount ends
    assert os.readlink(kx / "submit/x.yaml.job") == link
    assert harness.permissions(kx / "submit/scratch") == 0o600
    assert (kx / "submit/scratch").stat().st_mtime == 2
    assert launched(kx) == jobs


def test_strangers_in_the_state_directory(kx):
    """kxfs neither shows nor uses files in its state directory that it has not created."""
    kx.end()
    sub = kx.state / "submit"
    os.symlink("/etc/passwd", sub / "evil.yaml")
    os.symlink("../../../etc", sub / "x.yaml.job")
    os.mkdir(sub / "d.yaml")
    os.mkfifo(sub / "f.yaml.error")
    (sub / "a\nb").write_text("x")
    kx.start()
    assert kx.ls("submit") == []
    assert put(kx, "x.yaml", GOOD) == ""
    assert stat.S_ISLNK(os.lstat(kx / "submit/x.yaml.job").st_mode)


# --- names that do not submit, and interrupted writers ---


def test_mv_reports_a_refused_move(kx):
    """A refused document makes mv fail with EBADMSG. EINVAL would make mv report a move of a directory into itself."""
    kx.write("submit/tmp", "nonsense: [")
    p = kx.call("mv submit/tmp submit/app.yaml", check=False)
    assert p.returncode == 1 and "subdirectory" not in p.stderr and "Bad message" in p.stderr
    assert "a value is missing" in kx.read("submit", "app.yaml.error")


@pytest.mark.parametrize("name", ["train", "train.txt", "x.txt.job", "train.py", "train.yaml.txt", "train.jsonl",
                                  "train.yaml.", "train.yaml "])
def test_name_that_does_not_submit(kx, name):
    """If a user copies a file to a name that does not submit, NAME.error says that the file must be renamed."""
    text = f"{name}: not submitted: the name must end in .yaml, .yml or .json\n"
    kx.write(f"submit/{name}", app("true"))
    kx.write(f"submit/{name}", app("true"))
    assert kx.read("submit", f"{name}.error") == text and kx.ls("jobs") == []
    assert kx.read(".kxfs", "log").count(f"submit/{text}") == 1
    kx.call(f"mv 'submit/{name}' submit/app.yaml")
    assert kx.ls("submit") == ["app.yaml", "app.yaml.job"] and len(kx.ls("jobs")) == 1
    kx.write(f"submit/{name}", app("true"))
    kx.call("rm submit/*")
    assert kx.ls("submit") == []


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGTERM], ids=lambda s: s.name)
def test_writer_that_was_not_done(kx, sig):
    """kxfs ends while a process writes. Of contents that were not closed, only synced ones remain, and nothing is
    launched."""
    held = [open(kx / "submit" / name, "w") for name in ("part.yaml", "scratch", "unsynced.yaml", "empty.yaml")]
    for f in held[:3]:
        f.write(app("true"))
        f.flush()
    os.fsync(held[0].fileno())
    job = kx.submit(app("exit 0"), "done.yaml")
    job.finish()
    kx.end(sig)
    for f in held:
        with contextlib.suppress(OSError):
            f.close()
    kx.start()
    assert kx.read("submit", "part.yaml") == app("true")
    assert not {"unsynced.yaml", "empty.yaml"} & set(kx.ls("submit"))
    assert not [name for name in kx.ls("submit") if name.endswith(".error")]
    os.rename(kx / "submit/part.yaml", kx / "submit/other.yaml")
    assert kx.ls("jobs") == [job.id]
