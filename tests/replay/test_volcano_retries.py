# SPDX-License-Identifier: MIT
"""The effect of max_retries and retry_policy on Volcano, which counts attempts, restarts single replicas from
version 1.11 on, and deletes the pod whose end was the job's."""

import harness
import pytest
import replies
import store as st


@pytest.fixture
def job(kx, volcano):
    """Return a job of two replicas, each of which may fail once."""
    job = kx.submit(harness.app("true", num_replicas=2, max_retries=1, retry_policy="REPLICA"))
    volcano.start(job.id)
    job.until("RUNNING")
    return job


def uids(server, volcano, job):
    return [server.store.find(st.PODS, "test", pod).uid for pod in volcano.pods(job.id)]


def counts(job):
    status = job.status()
    return status["retries"], status["max_retries"]


def test_application(kx, server, volcano):
    """One retry is one more attempt, and is counted once."""
    del server
    job = kx.submit(harness.app("true", max_retries=1))
    for attempt in range(2):
        assert counts(job) == (attempt, 1)
        (pod,) = volcano.start(job.id)
        job.until("RUNNING")
        volcano.log(pod).append(f"attempt {attempt}\n")
        job.until_logged(f"attempt {attempt}\n")
        volcano.finish(pod, 3 + attempt)
        harness.wait_for(lambda n=attempt: job.state() == "FAILED" if n else counts(job) == (1, 1))
    # The end of the job may be reported before that of its pod.
    harness.wait_for(lambda: job.read("why") == "main-0 ended with exit code 4. Retries used: 1; max_retries is 1. "
                                                "Its output is in main-0/log. Its last words:\n    attempt 1\n", what="why")
    assert counts(job) == (1, 1) and job.replica()["attempt"] == 1
    assert [job.log(name=name) for name in ("log.0", "log")] == [b"attempt 0\n", b"attempt 1\n"]


LOGS = {"resource": "pods", "subresource": "log"}


def job_without_news(kx, server, volcano):
    """Return a job whose pod has printed; from then on its pods' events are held back."""
    job = kx.submit(harness.app("true", max_retries=1))
    (pod,) = volcano.start(job.id)
    volcano.log(pod).append("first\n")
    job.until_logged("first\n")
    server.hold(resource="pods")
    return job, pod


def assert_two_runs(job, pod, server, volcano):
    """The events arrive, and each pod has its own output."""
    server.hold(False, resource="pods")
    job.until_logged("second\n")
    volcano.finish(pod, 4)
    job.finish("FAILED")
    assert [job.log(name=name) for name in ("log.0", "log")] == [b"first\n", b"second\n"]


def test_pod_replaced_unseen(kx, server, volcano):
    """The watch of pods is late, so kxfs requests the log of a pod when another pod already has that name. The
    output of that one is not mixed in."""
    job, pod = job_without_news(kx, server, volcano)
    asked = server.count(**LOGS)
    volcano.log(pod).end()
    harness.wait_for(lambda: server.count(**LOGS) > asked and server.seen(**LOGS)[-1].code == 200,
                     what="the log to be asked for again")
    harness.wait_for(lambda: not server.open_streams(**LOGS), what="the streams to end")
    volcano.finish(pod, 3)
    lists = server.count(resource="pods", verb="list", subresource="")
    volcano.start(job.id)
    volcano.log(pod).append("second\n")
    harness.wait_for(lambda: server.count(resource="pods", verb="list", subresource="") > lists,
                     what="the pod to be asked for")
    assert_two_runs(job, pod, server, volcano)


def test_pod_replaced_while_away(kx, server, volcano):
    """The same, if the server was unreachable while the pod ended: a pod of the same name is not the same pod."""
    job, pod = job_without_news(kx, server, volcano)
    refused = server.faults.add("reply", times=1000, reply=replies.internal(), **LOGS)
    server.end_streams("reset", **LOGS)
    volcano.finish(pod, 3)
    volcano.start(job.id)
    volcano.log(pod).append("second\n")
    asked = server.count(**LOGS)
    harness.wait_for(lambda: server.count(**LOGS) > asked, what="the log to be asked for")
    server.faults.clear(refused)
    harness.wait_for(lambda: [req.code for req in server.seen(**LOGS)].count(200) > 2,
                     what="the log of the other pod to be asked for")
    asked = server.count(**LOGS)
    harness.wait_for(lambda: server.count(resource="pods", verb="list", subresource="") > 1
                     or server.count(**LOGS) > asked + 3, what="the pod to be asked for")
    assert_two_runs(job, pod, server, volcano)


def test_replica(server, volcano, job):
    """Only the failed replica restarts."""
    first, second = volcano.pods(job.id)
    before = uids(server, volcano, job)
    volcano.log(second).append("once\n")
    job.until_logged("once\n", "main-1")
    volcano.finish(second, 3)
    harness.wait_for(lambda: counts(job) == (1, 1))
    volcano.run(second)
    harness.wait_for(lambda: job.replica("main-1")["attempt"] == 1 and job.replica("main-1")["state"] == "RUNNING")
    after = uids(server, volcano, job)
    assert after[0] == before[0] and after[1] != before[1] and job.replica()["attempt"] == 0
    volcano.log(second).append("twice\n")
    job.until_logged("twice\n", "main-1")
    volcano.finish_all([first, second])
    job.finish()
    assert [job.log("main-1", name) for name in ("log.0", "log")] == [b"once\n", b"twice\n"]


def test_replica_without_retries(server, volcano, job):
    """The pod whose end was the job's is deleted; how it ended is known."""
    del server
    _, second = volcano.pods(job.id)
    volcano.finish(second, 3)
    volcano.run(second)
    harness.wait_for(lambda: job.replica("main-1")["attempt"] == 1 and job.replica("main-1")["state"] == "RUNNING")
    volcano.finish(second, 4)
    job.finish("FAILED")
    assert volcano.pods(job.id) == [] and counts(job) == (1, 1)
    harness.wait_for(lambda: (job.replica("main-1")["state"], job.replica("main-1")["exit_code"]) == ("FAILED", 4))
    harness.wait_for(lambda: job.replica("main-0")["state"] == "CANCELLED")
    assert job.status()["reason"] == "Error"
    assert job.read("why").startswith("main-1 ended with exit code 4. Retries used: 1; max_retries is 1.")


def test_replica_before_1_11(server, volcano, job):
    """Volcano accepts the policy, and ignores it."""
    del server
    volcano.targets = False
    volcano.finish_all(volcano.pods(job.id), 3)
    job.finish("FAILED")
    assert counts(job) == (0, 1)
