# SPDX-License-Identifier: MIT
"""jobs/ID/ctl: suspend, resume, restart, terminate."""

import os
import signal
import pathlib

import pytest
from harness import actions, alive, app, err_of, grows, rmdir, run, wait_for, write_ctl

COUNT = "echo $$; while :; do echo tick; sleep 0.05; done"


def pid_of(job):
    job.until_logged("\n")
    return int(job.log().split()[0])


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
    assert actions(ticking) == ["resume", "terminate"] or actions(ticking) == ["resume", "restart", "terminate"]
    write_ctl(ticking, "terminate\n")
    ticking.until("FAILED")  # as TorchX sees a job that was terminated
    assert actions(ticking) == ["restart"] or actions(ticking) == []


@pytest.mark.parametrize("word", ["suspend", "abort"])
def test_suspend_and_resume(kx, ticking, word):
    pid = pid_of(ticking)
    write_ctl(ticking, word)
    # D: a shell whose child was stopped between vfork and exec.
    wait_for(lambda: process_state(pid) in "TD", what="the process to be stopped")
    assert ticking.state() == "CANCELLED"  # as TorchX sees an aborted job; it may come back
    assert ticking.status()["phase"] == "Suspended"
    wait_for(lambda: not grows(ticking), what="its last output")
    before = len(ticking.log())
    write_ctl(ticking, "resume")
    assert ticking.state() == "RUNNING"
    wait_for(lambda: len(ticking.log()) > before, what="it to print again")
    wait_for(lambda: process_state(pid) != "T", what="the process to go on")


def test_shell_reports_it(ticking):
    run(f"echo suspend > {ticking.dir}/ctl")
    assert ticking.status()["phase"] == "Suspended"
    p = run(f"echo suspend > {ticking.dir}/ctl", check=False)
    assert p.returncode != 0 and "Invalid argument" in p.stderr


def test_restart(ticking):
    pid = pid_of(ticking)
    write_ctl(ticking, "restart")
    wait_for(lambda: not alive(pid))
    wait_for(lambda: os.path.exists(ticking / "main-0/log.0"), what="the log of the first attempt")
    ticking.until("RUNNING")
    ticking.until_logged("tick")
    assert int(ticking.log(name="log.0").split()[0]) == pid
    assert pid_of(ticking) != pid
    assert ticking.replica()["attempt"] == 1


def test_terminate(ticking):
    pid = pid_of(ticking)
    write_ctl(ticking, "terminate")
    ticking.until("FAILED")
    assert ticking.id in ticking.kx.ls("jobs")  # it stays, unlike after rm -r
    wait_for(lambda: not alive(pid))


def test_suspended_job_can_be_cancelled(make_kx):
    """A suspended job is woken for SIGTERM: its output is kept, and the job does not wait for the grace."""
    kx = make_kx("grace=60")
    job = kx.submit(app("trap 'echo bye; exit' TERM; echo $$; while :; do sleep 0.1; done"))
    pid = pid_of(job)
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
        write_ctl(ticking, word)  # nothing written is nothing done
    else:
        assert err_of(write_ctl, ticking, word) == "EINVAL"
    assert ticking.state() == "RUNNING"


def test_refused_when_finished(kx):
    job = kx.submit(app("true"))
    job.finish()
    for word in ("suspend", "resume", "terminate"):
        assert err_of(write_ctl, job, word) == "EINVAL"
    assert kx.ls("jobs") == [job.id]


def test_log_has_the_reason(kx, ticking):
    assert err_of(write_ctl, ticking, "resume") == "EINVAL"
    assert ticking.id in kx.read(".kxfs", "log")


@pytest.mark.parametrize("option", ["ro", "cancel=none"])
def test_why_names_only_what_ctl_takes(make_kx, option):
    kx = make_kx()
    job = kx.submit(app(COUNT))
    job.until_logged("tick")
    write_ctl(job, "suspend")
    assert job.read("why") == ("The job is suspended. To resume it, write resume to its ctl; to end it, write terminate "
                               "there or remove its directory.\n")
    kx.end(signal.SIGKILL)
    kx.options = option
    kx.start()
    assert job.read("ctl") == "" and job.read("why") == "The job is suspended.\n"
    kx.end()
    kx.options = ""
    kx.start()  # it ends the job when it ends


def test_cancel_none(make_kx):
    """Where nothing may be cancelled, nothing may be suspended, restarted or terminated."""
    kx = make_kx("cancel=none")
    job = kx.submit(app(COUNT))
    job.until_logged("tick")
    for word in ("suspend", "restart", "terminate"):
        assert err_of(write_ctl, job, word) == "EPERM"
    assert job.state() == "RUNNING"
    assert "cancel=none" in kx.read(".kxfs", "log")
