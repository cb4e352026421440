# SPDX-License-Identifier: MIT
"""Changing jobs: removing their directories, and writing to ctl."""

import os
import pathlib
import signal

import pytest
from harness import actions, alive, app, err_of, grows, remove, removed, rmdir, run, run_tty, wait_for, write_ctl
from starting import started

# --- Removing a job's directory ---------------------------------------------------------------
# Removing a job's directory cancels the job, with any command, without a question, and once.

SLEEP = "echo $$; exec sleep 1000"
TOOLS = {
    "rm -r": "rm -r {}",
    "rm -rf": "rm -rf {}",
    "rmdir": "rmdir {}",
    "find": "find {} -delete",
    "find -depth": "find {} -depth -delete",
    "python": "/usr/bin/python3 -c 'import shutil, sys; shutil.rmtree(sys.argv[1])' {}",
    "busybox": "busybox rm -r {}",
    "perl": "perl -MFile::Path=remove_tree -e 'remove_tree($ARGV[0], {{error => \\my $e}}); print %$_ for @$e; exit(@$e != 0)' {}",
}


@pytest.mark.parametrize("tool", TOOLS)
def test_tools(kx_of_each, tool, sanitized):
    kx = kx_of_each
    submit = f"cat > {kx.mnt}/submit/sleeper.yaml"
    run(submit, user=kx.user, input=app(SLEEP, num_replicas=2))
    link = run(["readlink", f"{kx.mnt}/submit/sleeper.yaml.job"], user=kx.user).stdout.strip()
    ident = os.path.basename(link)
    log = f"{kx.mnt}/jobs/{ident}/main-0/log"
    pid = int(wait_for(lambda: run(["cat", log], user=kx.user).stdout.strip()))

    status, out = run_tty(TOOLS[tool].format(f"{kx.mnt}/jobs/{ident}"), user=kx.user)
    if "timed out" in out:  # see rmdir()
        wait_for(lambda: run(["ls", f"{kx.mnt}/jobs"], user=kx.user).stdout == "", what="the job to go")
    else:
        assert (status, out) == (0, "")  # no question, no complaint
    assert run(["ls", f"{kx.mnt}/jobs"], user=kx.user).stdout == ""
    wait_for(lambda: not alive(pid))
    assert run(["ls", f"{kx.mnt}/history"], user=kx.user).stdout.split() == [ident, "list", "list.jsonl"]
    assert run(["cat", f"{kx.mnt}/history/{ident}/state"], user=kx.user).stdout == "CANCELLED\n"
    assert run(["cat", f"{kx.mnt}/history/{ident}/main-0/log"], user=kx.user).stdout == f"{pid}\n"
    # changes shows the end of the job only once.
    changes = f"timeout 1 cat {kx.mnt}/changes"
    assert ident not in run(changes, check=False, user=kx.user).stdout


def test_one_cancel(kx):
    """`changes` and a waiting reader of `wait` get one end of the job. A second rmdir fails because the directory is
    gone."""
    job, _ = started(kx)
    with open(kx / "changes", encoding="utf-8") as f, open(job / "wait", encoding="utf-8") as waiting:
        while "SYNC" not in f.readline():
            pass
        remove(job.dir)
        assert waiting.read() == "CANCELLED\n"
        assert err_of(os.rmdir, job.dir) == "ENOENT"
        marker = kx.submit(app("true"))
        marker.finish()
        lines = []
        while not lines or marker.id not in lines[-1] or "SUCCEEDED" not in lines[-1]:
            lines.append(f.readline())
    assert {line.split("\t")[2].strip() for line in lines if job.id in line} == {"CANCELLED"}


def test_mv_out_of_the_mount_is_rm(kx):
    """mv to another file system copies and then removes: the job is cancelled, and the copy remains."""
    job, pid = started(kx)
    target = kx.base / "moved"
    removed(run(["mv", str(job.dir), str(target)], check=False), job.dir)
    wait_for(lambda: not alive(pid))
    assert (target / "main-0/log").read_text() == f"{pid}\n"
    assert kx.ls("jobs") == []


def test_log_without_its_file(kx):
    """If the file of a log is missing in the state directory, opening the log fails, but rm does not."""
    job = kx.submit(app("echo out"))
    job.finish()
    (kx.folder(job.id) / "logs/main-0.0").unlink()
    with pytest.raises(FileNotFoundError):
        job.log()
    assert (job / "main-0/log").stat().st_size == 0
    remove(job.dir)
    assert kx.ls("jobs") == []


@pytest.mark.parametrize("command", ["rm -r jobs/*", "find jobs -mindepth 1 -delete"])
def test_all_at_once(kx, command):
    """One command removes many jobs, running and finished. find removes the contents of a job before the job itself."""
    jobs = [kx.submit(app("sleep 1000" if i % 2 else "true")) for i in range(30)]
    for i, job in enumerate(jobs):
        job.until("RUNNING" if i % 2 else "SUCCEEDED")
    removed(kx.call(command, check=False), *(job.dir for job in jobs))
    assert kx.ls("jobs") == []
    assert kx.history() == sorted(job.id for job in jobs)
    for i, job in enumerate(jobs):
        expected = "CANCELLED\n" if i % 2 else "SUCCEEDED\n"
        wait_for(lambda: (job.old / "state").read_text() == expected)


@pytest.mark.parametrize("what", ["jobs/*", ""])
def test_what_was_cancelled_stays_in_history(kx, what):
    """rm -r of the whole mount, or of other parts, cancels all jobs. They remain in history/, because rm has emptied
    history/ before they get there."""
    ids = {started(kx)[0].id for _ in range(4)}
    run(f"rm -rf {kx / what}", check=False)
    wait_for(lambda: kx.ls("jobs") == [])  # a slow disk may delay the removal (see rmdir())
    assert ids <= set(kx.ls("history"))
    assert {kx.read("history", job, "state") for job in ids} == {"CANCELLED\n"}


def test_open_files_survive(kx):
    """A process that has a log open can still read it after the job is removed."""
    job, pid = started(kx)
    with open(job / "main-0/log", "rb") as f:
        remove(job.dir)
        assert f.read() == f"{pid}\n".encode()
        wait_for(lambda: not alive(pid))
        remove(job.old)
        f.seek(0)
        assert f.read() == f"{pid}\n".encode()


@pytest.mark.parametrize("tool", TOOLS)
def test_cancel_none(make_kx, tool):
    """With cancel=none, a job can neither be removed nor suspended, restarted or terminated."""
    kx = make_kx("cancel=none")
    job, pid = started(kx)
    p = run(TOOLS[tool].format(job.dir), check=False)
    assert p.returncode != 0 and ("not permitted" in p.stderr or tool == "perl")
    assert alive(pid) and job.state() == "RUNNING"
    for word in ("suspend", "restart", "terminate"):
        assert err_of(write_ctl, job, word) == "EPERM"
    # The job still exists, with all its files.
    wait_for(lambda: {"main-0", "logs", "state", "ctl"} <= set(os.listdir(job.dir)))
    wait_for(lambda: "log" in os.listdir(job / "main-0"))
    assert "cancel=none" in kx.read(".kxfs", "log")


def test_read_only_mount(make_kx):
    kx = make_kx()
    job, _ = started(kx)
    kx.restart(options="ro")
    assert err_of(os.rmdir, job.dir) == "EROFS"
    for name in ("x.yaml", "scratch"):
        assert err_of(kx.write, f"submit/{name}", app("true")) == "EROFS"
    assert err_of(os.mkdir, kx / "submit/x") == "EROFS"
    assert err_of(os.open, job / "ctl", os.O_WRONLY) == "EROFS"
    assert job.state() == "CANCELLED"


# --- ctl --------------------------------------------------------------------------------------
# jobs/ID/ctl: suspend, resume, restart, terminate.

COUNT = "echo $$; while :; do echo tick; sleep 0.05; done"


def process_state(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.fixture
def ticking(kx):
    job = kx.submit(app(COUNT))
    job.until_logged("tick")
    return job


def test_lists_what_can_be_done(ticking):
    assert actions(ticking) == ["suspend", "restart", "terminate"]
    write_ctl(ticking, "suspend\n")
    assert actions(ticking) == ["resume", "restart", "terminate"]
    pid = ticking.pid()
    write_ctl(ticking, "terminate\n")
    ticking.until("FAILED")  # TorchX has no state for a terminated job, so it is FAILED
    assert ticking.id in ticking.kx.ls("jobs")  # unlike after rm -r, the job stays in jobs/
    wait_for(lambda: not alive(pid))
    assert actions(ticking) == []


@pytest.mark.parametrize("word", ["suspend", "abort"])
def test_suspend_and_resume(kx, ticking, word):
    pid = ticking.pid()
    write_ctl(ticking, word)
    # D: a shell that waits for its child, which was stopped between vfork and exec.
    wait_for(lambda: process_state(pid) in "TD", what="the process to be stopped")
    assert ticking.state() == "CANCELLED"  # TorchX has no state for a suspended job, so it is CANCELLED; it may run again
    assert ticking.status()["phase"] == "Suspended"
    wait_for(lambda: not grows(ticking), what="its last output")
    before = len(ticking.log())
    write_ctl(ticking, "resume")
    assert ticking.state() == "RUNNING"
    wait_for(lambda: len(ticking.log()) > before, what="it to print again")
    wait_for(lambda: process_state(pid) != "T", what="the process to go on")


def test_restart(ticking):
    pid = ticking.pid()
    write_ctl(ticking, "restart")
    wait_for(lambda: not alive(pid))
    wait_for(lambda: os.path.exists(ticking / "main-0/log.0"), what="the log of the first attempt")
    ticking.until("RUNNING")
    ticking.until_logged("tick")
    assert int(ticking.log(name="log.0").split()[0]) == pid
    assert ticking.pid() != pid
    assert ticking.replica()["attempt"] == 1


def test_suspended_job_can_be_cancelled(make_kx):
    """Cancelling a suspended job continues it, so that it acts on SIGTERM: its output is kept, and kxfs need not
    wait for the grace period."""
    kx = make_kx("grace=60")
    job = kx.submit(app("trap 'echo bye; exit' TERM; echo $$; while :; do sleep 0.1; done"))
    pid = job.pid()
    write_ctl(job, "suspend")
    rmdir(job.dir)
    wait_for(lambda: not alive(pid))
    wait_for(lambda: (job.old / "state").read_text() == "CANCELLED\n")
    wait_for(lambda: (job.old / "main-0/log").read_text().endswith("bye\n"))


@pytest.mark.parametrize("word", ["resume", "", "\n", "no-such-word", "suspend resume", "x" * 5000,
                                  "suspend\0", "SUSPEND"],
                         ids=["not-now", "nothing", "newline", "unknown", "two", "long", "nul", "capitals"])
def test_refused(ticking, word):
    if word == "":
        write_ctl(ticking, word)  # an empty write does nothing
    else:
        assert err_of(write_ctl, ticking, word) == "EINVAL"
        assert ticking.id in ticking.kx.read(".kxfs", "log")
    assert ticking.state() == "RUNNING"


def test_refused_when_finished(kx):
    job = kx.submit(app("true"))
    job.finish()
    for word in ("suspend", "resume", "terminate"):
        assert err_of(write_ctl, job, word) == "EINVAL"
    assert kx.ls("jobs") == [job.id]


@pytest.mark.parametrize("option", ["ro", "cancel=none"])
def test_why_names_only_what_ctl_takes(make_kx, option):
    kx = make_kx()
    job = kx.submit(app(COUNT))
    job.until_logged("tick")
    write_ctl(job, "suspend")
    assert job.read("why") == ("The job is suspended. To resume the job, write \"resume\" to its "
                               "file ctl; to end the job, write \"terminate\" there or remove its directory.\n")
    kx.restart(signal.SIGKILL, options=option)
    assert job.read("ctl") == "" and job.read("why") == "The job is suspended.\n"
    kx.end()
    kx.options = ""
    kx.start()  # this mount ends the job when it is unmounted
