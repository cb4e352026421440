# SPDX-License-Identifier: MIT
"""jobs/ID/ctl on a real cluster: what its controller obeys is done, what it would ignore is refused."""

import os

from harness import actions, err_of, run, wait_for, write_ctl
from mounted import HOLD, app, begun, phase, running

WORDS = ("suspend", "resume", "restart", "terminate")
BUSY = ["suspend", "restart", "terminate"]


def refused(job, *but):
    """Every word but these is refused, and changes nothing."""
    before = job.status()
    for word in WORDS:
        if word not in but:
            assert err_of(write_ctl, job, word) == "EINVAL", word
    after = job.status()
    assert (after["phase"], after["retries"]) == (before["phase"], before["retries"])


def done(job, so):
    """What was written to ctl is done when the write returns, or is said to be under way; and then it is done."""
    status = job.status()
    assert so(status) or status["pending_command"]
    wait_for(lambda: so(job.status()) and not job.status()["pending_command"], what="the command to be obeyed")


def test_suspend_and_resume(mount, world, limited):
    """With no more rights than contrib/rbac.yaml gives. What was printed stays, as the first attempt's."""
    kx = mount(kubeconfig=limited)
    job = kx.submit(app(HOLD))
    begun(job)
    phase(job, "Running")
    assert actions(job) == BUSY
    refused(job, *BUSY)
    run(f"echo suspend > {job.dir}/ctl")
    done(job, lambda status: status["phase"] in ("Aborting", "Aborted"))
    phase(job, "Aborted")
    assert job.state() == "CANCELLED" and actions(job) == ["resume"]
    assert job.read("wait") == "CANCELLED\n" and "resume" in job.read("why")
    refused(job, "resume")
    wait_for(lambda: not world.pods(job.id), what="its pods to be gone")
    assert job.log().startswith(b"begin\n")
    write_ctl(job, "resume")
    done(job, lambda status: status["retries"] == 1)
    begun(job, attempt=1)
    assert job.log(name="log.0").startswith(b"begin\n")
    world.release_all(job.id)
    job.finish()
    phase(job, "Completed")
    assert actions(job) == []
    refused(job)


def test_restart(kx, world):
    job = kx.submit(app(HOLD, num_replicas=2))
    begun(job)
    phase(job, "Running")
    write_ctl(job, "restart")
    begun(job, attempt=1)
    running(job, "main-1")
    wait_for(lambda: job.status()["retries"] == 1 and job.status()["phase"] == "Running", what="the retry to be told")
    assert job.log(name="log.0").startswith(b"begin\n")
    write_ctl(job, "restart")
    begun(job, attempt=2)
    # Volcano's default is 3, which it compares before it starts a job again.
    wait_for(lambda: actions(job) == ["suspend", "terminate"], what="the last attempt to run")
    assert err_of(write_ctl, job, "restart") == "EINVAL"
    assert "has none left" in kx.read(".kxfs", "log")
    world.release_all(job.id)
    job.finish()


def test_terminate(kx, world):
    job = kx.submit(app(HOLD))
    begun(job)
    phase(job, "Running")
    write_ctl(job, "terminate")
    job.until("FAILED")
    phase(job, "Terminated")
    assert actions(job) == []
    refused(job)
    wait_for(lambda: not world.pods(job.id), what="its pods to be gone")
    assert job.id in kx.ls("jobs") and job.log().startswith(b"begin\n")


def test_failed(kx, world):
    """Volcano answers 201 to all of these, and does nothing."""
    job = kx.submit(app(HOLD))
    world.release(running(job), 3)
    job.finish("FAILED")
    phase(job, "Failed")
    refused(job)


def test_while_it_waits(kx, world):
    """A job that has no room yet can be held back, and let wait again."""
    job = kx.submit(app(HOLD, resource={"cpu": 0.1, "memMB": 64, "gpu": 0, "capabilities": {
        "node.kubernetes.io/instance-type": "no-such-type"}}))
    wait_for(lambda: actions(job) == BUSY, what="the controller")
    assert job.status()["phase"] == "Pending"
    write_ctl(job, "abort")
    phase(job, "Aborted")
    write_ctl(job, "resume")
    phase(job, "Pending")
    write_ctl(job, "terminate")
    job.until("FAILED")
    assert job.id in world.jobs()


def test_replaced(kx, world):
    """Volcano would obey a Command whose uid is another job's."""
    job = kx.submit(app(HOLD))
    begun(job)
    fd = os.open(job / "ctl", os.O_WRONLY)
    try:
        world.kubectl("delete", "jobs.batch.volcano.sh", job.id)
        wait_for(lambda: job.id not in kx.ls("jobs"), what="the job to go")
        assert err_of(os.write, fd, b"terminate") in ("ENOENT", "ESTALE")
    finally:
        os.close(fd)
