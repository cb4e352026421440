# SPDX-License-Identifier: MIT
"""Changing jobs of a cluster: removing their directories, and writing to ctl."""

import json
import time

import harness
import pytest
import replies
import store as st
import watching
from harness import actions, write_ctl

# --- Removing a job's directory ---------------------------------------------------------------
# `rm -r` of a cluster's job sends one DELETE for exactly this job. The tests cover each way in which that can be
# refused.

APP = harness.app("true", num_replicas=2)


def deletes(server):
    return server.seen(verb="delete", resource="jobs")


def rm(kx, name, tool="rm -r"):
    return harness.run(f"{tool} {kx.mnt}/jobs/{name}", check=False, user=kx.user)


def is_late(p):
    """True if rm took longer than the 3 s for which rmdir waits for the server. jobs/ then shows the result later."""
    return p.returncode != 0 and "timed out" in p.stderr


def refused(kx, name):
    """Return the message of `rm -r` of a job that the server refuses to delete. If rm has timed out, wait until kxfs
    has the refusal."""
    p = rm(kx, name)
    if is_late(p):
        harness.wait_for(lambda: f"{name}: rmdir failed: " in kx.read(".kxfs", "log"), what="the server's refusal")
    return p


def removed(kx, name, p):
    """Check that the command P has removed the job, or that the removal continues."""
    assert p.returncode == 0 or is_late(p), p.stderr
    harness.wait_for(lambda: p.returncode == 0 or name not in kx.ls("jobs"), what=f"{name} to go")
    assert name not in kx.ls("jobs")


def gone(server, kx, name, p):
    removed(kx, name, p)
    assert server.store.find(st.JOBS, "test", name) is None


@pytest.mark.parametrize("tool", ["rm -r", "rmdir", "busybox rm -r", "find -delete"])
@pytest.mark.concurrent
def test_cancel(kx, server, volcano, tool):
    job = kx.submit(APP)
    volcano.start(job.id)
    job.until("RUNNING")
    uid = server.store.find(st.JOBS, "test", job.id).uid
    if tool == "find -delete":
        p = harness.run(["find", str(job.dir), "-delete"], check=False)
    else:
        p = rm(kx, job.id, tool)
    gone(server, kx, job.id, p)
    (delete,) = deletes(server)
    assert delete.name == job.id
    body = json.loads(delete.body)
    assert body["preconditions"]["uid"] == uid
    assert body["propagationPolicy"] == "Background"


@pytest.mark.parametrize("reply,text", [
    (replies.forbidden("ada", "delete", st.JOBS, "test", "x"), "Permission denied"),
    (replies.recorded("401-bad-token.json"), "Permission denied"),
    (replies.wrong_uid(st.JOBS, "x", "a", "b"), "Stale file handle"),
    (replies.internal(), ""),
], ids=["403", "401", "another uid", "500"])
def test_removal_refused(kx, server, volcano, reply, text):
    """rmdir fails with the matching errno. The whole job still exists, even for processes that have its files open."""
    job = kx.submit(APP)
    volcano.start(job.id)
    watching.until_runs(job)
    before = {p.relative_to(job.dir) for p in job.dir.rglob("*")}
    with open(job / "main-0/status") as held:
        server.faults.add("reply", times=1000, reply=reply, verb="delete")
        p = refused(kx, job.id)
        assert p.returncode == 1 and (text in p.stderr or is_late(p))
        assert held.read()
    server.faults.clear()
    assert job.state() == "RUNNING"
    # There may be more files by now, for example events.
    harness.wait_for(lambda: {p.relative_to(job.dir) for p in job.dir.rglob("*")} >= before)
    gone(server, kx, job.id, rm(kx, job.id))


def hush(server):
    """Stop all events about jobs for the mount."""
    server.faults.add("silent", times=100, resource="jobs", verb="watch")
    server.faults.add("silent", times=100, resource="jobs", verb="list")
    server.end_streams("end", resource="jobs")
    harness.wait_for(lambda: not server.open_streams(resource="jobs"))


def test_removal_of_another_job(kx, server, volcano):
    """Another job has replaced the job of this name. rmdir does not cancel the new job."""
    del volcano
    job = kx.submit(APP)
    harness.wait_for(lambda: server.open_streams(resource="jobs", verb="watch"))
    hush(server)
    server.store.remove(st.JOBS, "test", job.id)
    server.store.add(st.JOBS, watching.job(job.id))
    p = refused(kx, job.id)
    assert p.returncode == 1 and ("Stale" in p.stderr or is_late(p))
    assert server.store.find(st.JOBS, "test", job.id)


def test_gone_already(kx, server, volcano):
    """If another user has already deleted the job, rmdir succeeds."""
    del volcano
    job = kx.submit(APP)
    server.faults.add("reply", reply=replies.not_found(st.JOBS, job.id), verb="delete")
    p = rm(kx, job.id)
    assert p.returncode == 0 or "No such file" in p.stderr or is_late(p)


@pytest.mark.parametrize("fault", ["reset", "lose", "cut", "junk"])
@pytest.mark.concurrent
def test_broken_connection(kx, server, volcano, fault):
    """The reply is lost. A retry finds the job deleted, and rmdir succeeds."""
    job = kx.submit(APP)
    volcano.start(job.id)
    job.until("RUNNING")
    server.faults.add(fault, amount=60, verb="delete")
    p = rm(kx, job.id)
    gone(server, kx, job.id, p)
    assert len({json.loads(d.body)["preconditions"]["uid"] for d in deletes(server) if d.body}) == 1


@pytest.mark.concurrent
def test_cancelled_by_somebody_else(kx, server, volcano):
    """If another user deletes the job, `wait` ends and the job moves to history/."""
    job = kx.submit(APP)
    pods = volcano.start(job.id)
    volcano.log(pods[0]).append("hello\n")
    job.until_logged("hello\n", "main-0")
    with open(job / "wait", "rb") as file:  # open the file before the job is deleted
        waiting = harness.popen(["cat"], stdin=file, stdout=-1)
    server.store.remove(st.JOBS, "test", job.id)
    assert waiting.communicate(timeout=harness.LIMIT)[0] == b"CANCELLED\n"
    harness.wait_for(lambda: job.id not in kx.ls("jobs"))
    assert (job.old / "main-0/log").read_bytes() == b"hello\n"
    assert kx.history() == [job.id]


def test_removal_offline(kx, server, volcano):
    """While the server is unreachable, rm fails within its deadline, and the whole job still exists. A removal that
    failed with ETIMEDOUT may still take effect when the server is back."""
    del volcano
    job = kx.submit(APP)
    server.away()
    p = rm(kx, job.id)
    assert p.returncode == 1
    assert job.id in kx.ls("jobs") and job.status()["id"] == job.id
    server.back()
    harness.wait_for(lambda: rm(kx, job.id).returncode == 0 or job.id not in kx.ls("jobs"))
    harness.wait_for(lambda: server.store.find(st.JOBS, "test", job.id) is None)


# --- ctl --------------------------------------------------------------------------------------
# jobs/ID/ctl on Volcano: kxfs sends one Command if the controller would obey the action, and none if the controller
# would ignore it. kxfs reports both correctly.

BUSY = ["suspend", "restart", "terminate"]
def commands(server):
    """Return the Commands that kxfs has requested."""
    return [json.loads(request.body) for request in server.seen(verb="create", resource="commands")
            if request.body]


@pytest.fixture
def job(kx, volcano):
    job = kx.submit(APP)
    volcano.start(job.id)
    watching.until_runs(job)
    return job


def obeyed(job, word, shown):
    """Write WORD to ctl. The write waits up to 5 s until SHOWN is true."""
    begin = time.monotonic()
    write_ctl(job, word)
    assert shown() or time.monotonic() > begin + 4
    harness.wait_for(shown, what=f"what comes of {word}")


def err_of_write(job, word):
    """Return the errno with which writing WORD fails, because the server refuses it. kxfs waits 4 s for each reply. On
    a slow machine the refusal may arrive later, and the write fails with ETIMEDOUT; then retry."""
    while True:
        begin = time.monotonic()
        err = harness.err_of(write_ctl, job, word)
        if err != "ETIMEDOUT" or time.monotonic() < begin + 3.5:
            return err
        harness.wait_for(lambda: job.status()["pending_command"] is None, what="the action to be ignored")


def is_aborting(job):
    return job.status()["phase"] in ("Aborting", "Aborted")


def test_suspend_and_resume(kx, server, job):
    assert actions(job) == BUSY
    assert harness.err_of(write_ctl, job, "queue team") == "ENOTSUP"
    obeyed(job, "suspend\n", lambda: is_aborting(job))
    harness.wait_for(lambda: job.status()["phase"] == "Aborted")
    assert job.state() == "CANCELLED"
    assert actions(job) == ["resume"] and job.status()["pending_command"] is None
    obeyed(job, "resume", lambda: job.status()["retries"] == 1)
    harness.wait_for(lambda: job.state() != "CANCELLED")
    assert [command["action"] for command in commands(server)] == ["AbortJob", "ResumeJob"]
    assert f"{job.id}: suspend" in kx.read(".kxfs", "log")


def test_command_names_the_job(server, job):
    """kxfs reads the job right before it sends a Command. The Command names the job by its uid, and is deleted with
    the job."""
    uid = server.store.find(st.JOBS, "test", job.id).uid
    reads = server.count(verb="get", resource="jobs")
    write_ctl(job, "abort")
    assert server.count(verb="get", resource="jobs") == reads + 1
    (command,) = commands(server)
    target = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": job.id, "uid": uid}
    assert command["action"] == "AbortJob" and command["target"] == target
    assert command["metadata"]["ownerReferences"] == [target]
    assert command["metadata"]["namespace"] == "test"


def test_restart(job, server, volcano):
    """After a restart, the output of the terminating pods is the log of the first attempt."""
    (first, _) = volcano.pods(job.id)
    volcano.log(first).append("working\n")
    harness.wait_for(lambda: server.open_streams(resource="pods", verb="get", name=first))
    write_ctl(job, "restart")
    harness.wait_for(lambda: len(volcano.pods(job.id)) == 2)
    volcano.start(job.id)
    job.until("RUNNING")
    harness.wait_for(lambda: job.replica("main-0")["attempt"] == 1)
    harness.wait_for(lambda: (job / "main-0/log.0").exists() and job.log(name="log.0") == b"working\n")
    harness.wait_for(lambda: job.status()["retries"] == 1)


def test_terminate(kx, server, job):
    """A terminated job remains in jobs/. kxfs refuses further actions without sending them."""
    write_ctl(job, "terminate")
    job.until("FAILED")
    assert actions(job) == [] and job.id in kx.ls("jobs")
    assert err_of_write(job, "restart") == "EINVAL"
    assert f"{job.id}/ctl: restart" in kx.read(".kxfs", "log")
    assert [command["action"] for command in commands(server)] == ["TerminateJob"]


def test_retries_used_up(make_mount, server, volcano):
    """If no retries are left, Volcano would let the job fail instead of restarting it, so kxfs does not offer a
    restart."""
    del volcano
    tree = watching.job("theirs", "Running")
    tree["status"]["retryCount"] = 2
    server.store.add(st.JOBS, tree)
    kx = make_mount(server, options="cancel=all")
    (job,) = kx.jobs()
    assert actions(job) == ["suspend", "terminate"]
    assert err_of_write(job, "restart") == "EINVAL"
    assert "restart is refused: the action uses a retry, and the job has none left" in kx.read(".kxfs", "log")
    assert not commands(server)


def test_ended_meanwhile(server, volcano, job):
    """The job has ended, but no event has reported that yet."""
    hush(server)
    volcano.set_phase(job.id, "Completed")
    assert job.state() == "RUNNING"
    assert err_of_write(job, "suspend") == "EINVAL"
    assert not commands(server)


def test_another_job_of_that_name(server, job):
    """Another job has replaced the job of this name, but no event has reported that yet."""
    hush(server)
    server.store.remove(st.JOBS, "test", job.id)
    server.store.add(st.JOBS, watching.job(job.id, "Running"))
    assert err_of_write(job, "terminate") == "ESTALE"
    assert not commands(server)


def test_ignored(kx, server, volcano, job):
    """The server accepts the Command with 201, but nothing happens."""
    volcano.commands = False
    before = time.monotonic()
    write_ctl(job, "suspend")
    assert 4 < time.monotonic() - before < 60
    assert job.status()["pending_command"] == "suspend" and job.state() == "RUNNING"
    assert harness.err_of(write_ctl, job, "terminate") == "EBUSY"
    harness.wait_for(lambda: job.status()["pending_command"] is None)
    assert job.status()["ignored_command"] == "suspend"
    assert f"{job.id}: suspend had no effect within 30 s: the job's controller ignored it" in kx.read(".kxfs", "log")
    assert len(commands(server)) == 1
    volcano.commands = True
    obeyed(job, "suspend", lambda: is_aborting(job))
    assert job.status()["ignored_command"] is None


@pytest.mark.parametrize("reply, err, text", [
    (replies.forbidden("ada", "create", st.COMMANDS, "test"), "EACCES", "create commands.bus.volcano.sh"),
    (replies.not_served(), "ENOTSUP", "commands.bus.volcano.sh"),
    (replies.denied("no"), "EINVAL", "no"),
], ids=["403", "404", "webhook"])
def test_refused(kx, server, job, reply, err, text):
    server.faults.add("reply", times=100, reply=reply, verb="create", resource="commands")
    assert err_of_write(job, "suspend") == err
    assert text in kx.read(".kxfs", "log")
    assert job.state() == "RUNNING" and job.status()["pending_command"] is None
    server.faults.clear()
    write_ctl(job, "suspend")


@pytest.mark.parametrize("fault", ["lose", "reset", "cut", "junk"])
def test_lost_reply(server, job, fault):
    """The reply to a Command is lost. Whether or not the Command has arrived, it is obeyed once, and the write
    succeeds."""
    server.faults.add(fault, amount=60, verb="create", resource="commands")
    write_ctl(job, "suspend")
    harness.wait_for(lambda: job.status()["phase"] == "Aborted")
    assert len({command["metadata"]["name"] for command in commands(server)}) == 1


@pytest.mark.parametrize("fault", ["lose", "cut"])
def test_lost_reply_of_a_restart(server, volcano, job, fault):
    """kxfs does not send a restart again if the reply is lost. Volcano deletes a Command before its effect shows, so
    the name would be free and the job could restart twice."""
    volcano.patient = []
    server.faults.add(fault, amount=60, verb="create", resource="commands")
    reads = server.count(verb="get", resource="jobs")
    begin = time.monotonic()
    writer = harness.popen(["sh", "-c", f"echo restart >{job.dir}/ctl"])
    harness.wait_for(lambda: server.count(verb="get", resource="jobs") >= reads + 3)
    assert job.status()["pending_command"] == "restart"
    volcano.obey()
    # kxfs gives up after 8 s.
    assert writer.wait(timeout=harness.LIMIT) == 0 or time.monotonic() > begin + 7
    volcano.obey()
    harness.wait_for(lambda: job.status()["retries"] == 1)
    assert volcano.job(job.id)["status"]["retryCount"] == 1
    assert len(commands(server)) == 1


@pytest.mark.parametrize("fault", ["reset", "503"])
def test_restart_that_did_not_arrive(kx, server, volcano, job, fault):
    """If a Command has not arrived, that looks like a Command that Volcano has not obeyed yet. The write reports an
    unknown result."""
    if fault == "reset":
        server.faults.add("reset", verb="create", resource="commands")
    else:
        server.faults.add("reply", reply=replies.unavailable(), verb="create", resource="commands")
    assert harness.err_of(write_ctl, job, "restart") == "ETIMEDOUT"
    assert "kxfs does not know whether the server accepted restart" in kx.read(".kxfs", "log")
    assert job.status()["pending_command"] == "restart"
    assert harness.err_of(write_ctl, job, "restart") == "EBUSY"
    assert server.count(verb="create", resource="commands") == 1
    assert volcano.job(job.id)["status"].get("retryCount", 0) == 0


def test_no_answer(kx, server, job):
    """The server does not reply. The write ends at its deadline, and reports an unknown result."""
    server.faults.add("silent", times=100, verb="create", resource="commands")
    assert harness.err_of(write_ctl, job, "suspend") == "ETIMEDOUT"
    assert "kxfs does not know whether the server accepted" in kx.read(".kxfs", "log")


def test_slow_answer(server, job):
    """A server that stalls for some seconds does not count as unreachable."""
    size = len(server.store.find(st.JOBS, "test", job.id).item)
    server.faults.add("slow", amount=size // 2 + 300, delay=5, verb="get", resource="jobs")
    write_ctl(job, "suspend")
    harness.wait_for(lambda: job.status()["phase"] == "Aborted", what="the command to be obeyed")


def test_offline(server, job):
    server.away()
    harness.wait_for(lambda: job.status()["stale_since"])
    # The errno is not ETIMEDOUT, with which a close fails after 30 s.
    assert harness.err_of(write_ctl, job, "suspend") == "EHOSTUNREACH"


def test_deleted_meanwhile(kx, server, volcano, job):
    """The job is deleted while a write to its ctl waits for a result."""
    volcano.commands = False
    begin = time.monotonic()
    writer = harness.popen(["sh", "-c", f"echo suspend >{job.dir}/ctl"])
    harness.wait_for(lambda: commands(server))
    server.store.remove(st.JOBS, "test", job.id)
    told = writer.wait(timeout=harness.LIMIT) != 0
    assert told or time.monotonic() > begin + 4  # the write waits for a result for 5 s
    assert (f"{job.id}/ctl: the job was deleted meanwhile" in kx.read(".kxfs", "log")) == told


@pytest.mark.parametrize("options, err", [("cancel=own", "EPERM"), ("cancel=none", "EPERM"), ("ro", "EROFS")])
def test_who_may(make_mount, server, options, err):
    server.store.add(st.JOBS, watching.job("theirs", "Running"))
    kx = make_mount(server, options=options)
    (job,) = kx.jobs()
    assert actions(job) == []
    assert harness.err_of(write_ctl, job, "terminate") == err
    assert not server.seen(verb="get", resource="jobs") and not commands(server)


def test_lost_and_ignored(server, volcano, job):
    """The reply is lost, and Volcano ignores the Command. A retry under the same name finds the Command."""
    volcano.commands = False
    server.faults.add("lose", verb="create", resource="commands")
    begin = time.monotonic()
    err = harness.err_of(write_ctl, job, "suspend")
    late = time.monotonic() > begin + 6.5  # if a reply took 4 s or more, kxfs waits longer than the 5 s for a result
    assert err == "" or late
    assert job.status()["pending_command"] == "suspend"
    assert len(commands(server)) == 2 or late
    assert len({command["metadata"]["name"] for command in commands(server)}) == 1


def test_late(server, volcano, job):
    """The controller obeys only after the write has returned. The next read shows the result."""
    volcano.commands = False
    write_ctl(job, "suspend")
    assert job.status()["pending_command"] == "suspend"
    volcano.set_phase(job.id, "Aborting")
    harness.wait_for(lambda: job.status()["phase"] == "Aborting")
    status = job.status()
    assert status["pending_command"] is None and status["ignored_command"] is None and actions(job) == ["resume"]
    assert len(commands(server)) == 1


def test_ends_with_the_mount(make_mount, server, volcano):
    """If the mount is removed during a write to ctl, the write fails."""
    kx = make_mount(server)
    job = kx.submit(APP)
    volcano.start(job.id)
    job.until("RUNNING")
    volcano.commands = False
    begin = time.monotonic()
    writer = harness.popen(["sh", "-c", f"echo suspend >{job.dir}/ctl"])
    harness.wait_for(lambda: commands(server))
    kx.end()
    # The write waits for a result for 5 s.
    assert writer.wait(timeout=harness.LIMIT) != 0 or time.monotonic() > begin + 4
