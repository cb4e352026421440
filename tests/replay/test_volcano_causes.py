# SPDX-License-Identifier: MIT
"""Causes that stay true: what `why` and `status` say while a job fails, is started again, loses its node, or is given
up, on a Volcano that does what the real one does. A line for each sentence: tests/unit/spec/kinds/test-volcano_why.c."""

import harness
import pytest
import store as st
import watching


def edit_pod(server, pod, edit):
    assert server.store.change(st.PODS, "test", pod, edit) is not None


@pytest.fixture
def job(kx, volcano):
    """One replica, which runs."""
    job = kx.submit(harness.app("true"))
    volcano.start(job.id)
    job.until("RUNNING")
    return job


def until_why(job, text):
    harness.wait_for(lambda: job.read("why") == text, what=text)


def ended(code):
    return {"terminated": {"exitCode": code, "reason": "Error", "startedAt": "2026-11-22T10:00:00Z",
                           "finishedAt": "2026-11-22T10:01:00Z"}}


def test_crash_loop(server, volcano, job):
    """A container that its pod runs again and again is not RUNNING, and nothing contradicts itself."""
    (pod,) = volcano.pods(job.id)

    def loop(tree):
        tree["spec"]["restartPolicy"] = "OnFailure"
        tree["status"]["containerStatuses"][0].update(
            restartCount=4, lastState=ended(3), state={"waiting": {
                "reason": "CrashLoopBackOff", "message": "back-off 2m40s restarting failed container=main-0"}})

    edit_pod(server, pod, loop)
    until_why(job, "main-0 ended with exit code 3. It was started 5 times so far, and is started again at "
                   "2026-11-22T10:03:40Z. Its output is in main-0/log.\n")
    assert job.state() == job.replica()["state"] == "PENDING" and job.replica()["exit_code"] == 3
    volcano.run(pod)
    job.until("RUNNING")
    assert job.replica()["exit_code"] is None and job.read("why") == ""
    edit_pod(server, pod, lambda tree: tree["status"]["containerStatuses"][0].update(state=ended(5)))
    harness.wait_for(lambda: job.replica()["exit_code"] == 5)
    assert job.state() == job.replica()["state"] == "PENDING"
    assert "started again by itself" in job.read("why")


def test_restarting(kx, server, volcano):
    """Between two attempts a job is PENDING."""
    del volcano
    tree = watching.job("theirs", "Restarting")
    server.store.add(st.JOBS, tree)
    job = harness.wait_for(lambda: kx.jobs() and kx.jobs()[0])
    job.until("PENDING")
    assert job.status()["phase"] == "Restarting"


def test_init_container(server, volcano, job):
    (pod,) = volcano.pods(job.id)

    def fail(tree):
        tree["spec"]["initContainers"] = [{"name": "prep", "image": "i"}]
        tree["status"].update(phase="Failed", initContainerStatuses=[
            {"name": "prep", "restartCount": 0, "state": ended(2), "lastState": {}}], containerStatuses=[
                {"name": "main-0", "restartCount": 0, "state": {"waiting": {"reason": "PodInitializing"}}}])

    edit_pod(server, pod, fail)
    job.finish("FAILED")
    assert job.read("why") == ("main-0 failed: init container prep: exit code 2. It was not tried again, because "
                               "max_retries is 0. The output of that container is in main-0/prep.log.\n")
    assert (job / "main-0/prep.log").exists()


def test_signal(volcano, job):
    volcano.finish(volcano.pods(job.id)[0], 139)
    job.finish("FAILED")
    assert job.read("why").startswith("main-0 ended with exit code 139, which means signal 11 (SIGSEGV). It was not")
