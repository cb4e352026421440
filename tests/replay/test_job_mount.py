# SPDX-License-Identifier: MIT
"""Mounts of a cluster's batch Jobs: a job from its submission to its end, retries, arrays, ctl, names, and Jobs of an
owner."""

import json
import os
import time

import harness
import pytest
import store as st
import yaml
from fakes import FakeJob
from harness import actions, err_of, write_ctl

APP = {"name": "app", "roles": [{
    "name": "main", "image": "i", "entrypoint": "e", "args": ["--rank=${replica_id}"], "num_replicas": 2,
    "retry_policy": "REPLICA", "max_retries": 1}]}


@pytest.fixture
def server(server):
    server.uninstall(*st.VOLCANO)
    server.install(st.BATCH_JOBS)
    return server


@pytest.fixture
def jobs(server):
    return FakeJob(server)


@pytest.fixture
def kx(make_mount, server, jobs):
    del jobs
    return make_mount(server, source="job:test")


def submit(kx, **fields):
    kx.write("submit/app.yaml", json.dumps({**APP, **fields}))
    return kx.job_of("app.yaml")


def test_from_submission_to_end(kx, server, jobs):
    job = submit(kx)
    assert job.status()["backend"] == "job"
    manifest = yaml.safe_load(job.read("manifest.yaml"))
    assert (manifest["apiVersion"], manifest["kind"]) == ("batch/v1", "Job")
    pods = jobs.start(job.id)
    job.until("RUNNING")
    jobs.log(pods[1]).append("hello\n")
    harness.wait_for(lambda: job.read("main-1/log") == "hello\n")
    for pod in pods:
        jobs.finish(pod)
    jobs.say(job.id, "Complete", reason="CompletionsReached", succeeded=2)
    assert job.read("wait") == "SUCCEEDED\n"
    assert job.read("log") == "main/1 hello\n" and job.read("why") == ""
    assert server.count(verb="create", resource="jobs") == 1


def test_retried(kx, jobs):
    """If a replica fails, only this replica gets another attempt, with its own log. When no retries are left, the
    job continues without it."""
    job = submit(kx)
    pods = jobs.start(job.id)
    jobs.log(pods[0]).append("first\n")
    harness.wait_for(lambda: job.read("main-0/log") == "first\n")
    jobs.finish(pods[0], code=3)
    harness.wait_for(lambda: job.replica("main-0")["state"] == "PENDING" and job.replica("main-0")["exit_code"] == 3)
    assert job.state() == "RUNNING"
    assert "It will be restarted soon." in job.read("why")
    time.sleep(1.1)  # kxfs orders pods by their creation time, which has whole seconds
    again = jobs.retry(job.id, 0)
    jobs.run(again)
    harness.wait_for(lambda: job.replica("main-0")["attempt"] == 1 and job.status()["retries"] == 1)
    jobs.log(again).append("second\n")
    harness.wait_for(lambda: job.read("main-0/log") == "second\n")
    assert job.read("main-0/log.0") == "first\n"
    jobs.finish(again, code=4)
    harness.wait_for(lambda: job.replica("main-0")["state"] == "FAILED")
    assert job.state() == "RUNNING"
    jobs.finish(pods[1])
    jobs.say(job.id, "FailureTarget", "Failed", reason="FailedIndexes", message="Job has failed indexes",
             failedIndexes="0")
    assert job.read("wait") == "FAILED\n"
    harness.wait_for(lambda: job.read("why") == "main-0 ended with exit code 4. Retries used: 1; max_retries is 1. "
                                                "Its output is in main-0/log. Its last output:\n    second\n", what="why")


def test_array(kx, server, jobs):
    """With `parallelism`, a limited number of replicas runs at the same time. `status` counts those that wait."""
    job = submit(kx, roles=[{**APP["roles"][0], "num_replicas": 5}], scheduler_args={"parallelism": 2})
    pods = jobs.start(job.id)
    assert len(pods) == 2
    harness.wait_for(lambda: job.status()["roles"][0]["running"] == 2)
    jobs.finish(pods[0])
    harness.wait_for(lambda: job.status()["roles"][0]["succeeded"] == 1)
    role = job.status()["roles"][0]
    assert [role[key] for key in ("desired", "running", "waiting", "failed")] == [5, 1, 3, 0]
    head, row = kx.read("list").splitlines()
    assert row.split()[head.split().index("READY")] == "2/5"  # replicas that have succeeded count as ready


def test_ctl(kx, server, jobs):
    """ctl suspends, resumes and terminates a Job. Each request has the version of the Job that kxfs has read; if the
    Job has changed since, kxfs reads it again."""
    job = submit(kx)
    jobs.start(job.id)
    # The pods' event may arrive before the job's own.
    harness.wait_for(lambda: job.state() == "RUNNING" and actions(job) == ["suspend", "terminate"], what="what ctl does")
    write_ctl(job, "suspend")
    assert job.status()["phase"] == "Suspended" and actions(job) == ["resume"]
    assert err_of(write_ctl, job, "terminate") == "EINVAL"
    write_ctl(job, "resume")
    assert job.status()["phase"] == "Running"
    write_ctl(job, "terminate")
    assert job.read("wait") == "FAILED\n" and job.status()["reason"] == "Terminated"
    # The pods still run here, so their logs have no end yet.
    assert job.read("why").startswith("The job was ended: it was terminated through ctl.")
    assert actions(job) == []
    # A copy of the terminated Job has no deadline.
    kx.write("submit/again.yaml", job.read("manifest.yaml"))
    again = server.store.find(st.BATCH_JOBS, "test", kx.job_of("again.yaml").id).tree()
    assert "activeDeadlineSeconds" not in again["spec"] and "suspend" not in again["spec"]


def test_generate_name(kx, server):
    """Each write of a manifest with generateName launches a new job. A fixed name gets a suffix if it is taken."""
    text = """---
apiVersion: batch/v1
kind: Job
metadata: {generateName: fmt-, namespace: ''}
spec:
  completions: 1
  parallelism: 1
  template:
    spec:
      containers: [{name: main, image: i}]
      volumes: [{name: v, configMap: {name: c, defaultMode: 0755}}]
---
"""
    ids = []
    for _ in range(2):
        assert not err_of(kx.write, "submit/fmt.yaml", text), kx.read("submit/fmt.yaml.error")
        ids.append(kx.job_of("fmt.yaml").id)
    assert len(set(ids)) == 2 and all(one.startswith("fmt-") and len(one) > 15 for one in ids)
    for one in ids:
        sent = server.store.find(st.BATCH_JOBS, "test", one).tree()
        assert sent["metadata"]["generateName"] == "fmt-"
        assert sent["spec"]["template"]["spec"]["volumes"][0]["configMap"]["defaultMode"] == 493
    kx.write("submit/again.yaml", kx.read("jobs", ids[0], "manifest.yaml"))
    assert kx.job_of("again.yaml").id not in ids


def test_owned(server, make_mount, jobs):
    """kxfs does not remove a Job that belongs to a JobSet, because the JobSet would create it again. It removes a
    Job of a CronJob."""
    del jobs
    kx = make_mount(server, source="job:test", options="cancel=all")
    for name, kind, api in (("of-set", "JobSet", "jobset.x-k8s.io/v1alpha2"), ("of-cron", "CronJob", "batch/v1"),
                            ("of-other", "CronJob", "example.com/v1")):
        server.store.add(st.BATCH_JOBS, {
            "metadata": {"name": name, "namespace": "test", "ownerReferences": [
                {"apiVersion": api, "kind": kind, "name": "o", "uid": f"t-{name}", "controller": True}]},
            "spec": {"completions": 1, "parallelism": 1, "template": {"spec": {"containers": [{"name": "c"}]}}}})
        harness.wait_for(lambda name=name: name in kx.ls("jobs"), what="the job")
    assert err_of(os.rmdir, kx / "jobs/of-set") == "EPERM" == err_of(os.rmdir, kx / "jobs/of-other")
    harness.rmdir(kx / "jobs/of-cron")
    assert server.store.find(st.BATCH_JOBS, "test", "of-set")
    assert not server.store.find(st.BATCH_JOBS, "test", "of-cron")
