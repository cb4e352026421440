# SPDX-License-Identifier: MIT
"""Mounts of a cluster with JobSet: a job from its submission to its end, restarts, and JobSets of an owner."""

import json
import os
import time

import harness
import pytest
import store as st
import yaml
from fakes import FakeJobSet

APP = json.dumps({"name": "app", "roles": [{
    "name": "main", "image": "i", "entrypoint": "e", "args": ["--rank=${replica_id}"], "num_replicas": 2,
    "max_retries": 1}]})


@pytest.fixture
def server(server):
    server.uninstall(*st.VOLCANO)
    server.install(st.JOBSETS)
    return server


@pytest.fixture
def jobsets(server):
    return FakeJobSet(server)


@pytest.fixture
def kx(make_mount, server, jobsets):
    del jobsets
    return make_mount(server, source="jobset:test")


def test_from_submission_to_end(kx, server, jobsets):
    kx.write("submit/app.yaml", APP)
    job = kx.job_of("app.yaml")
    assert job.status()["backend"] == "jobset"
    manifest = yaml.safe_load(job.read("manifest.yaml"))
    assert (manifest["apiVersion"], manifest["kind"]) == ("jobset.x-k8s.io/v1alpha2", "JobSet")
    job.until("PENDING")
    pods = jobsets.start(job.id)
    job.until("RUNNING")
    assert sorted(kx.ls(f"jobs/{job.id}/logs")) == ["main-0.log", "main-1.log"]
    jobsets.log(pods[1]).append("hello\n")
    harness.wait_for(lambda: job.read("main-1/log") == "hello\n")
    for pod in pods:
        jobsets.finish(pod)
    jobsets.say(job.id, "Completed", terminalState="Completed")
    assert job.read("wait") == "SUCCEEDED\n"
    assert job.read("log") == "main/1 hello\n"


def test_restarted(kx, jobsets):
    """A pod has failed, and the controller creates all pods again. Each replica gets another attempt with another
    log."""
    kx.write("submit/app.yaml", APP)
    job = kx.job_of("app.yaml")
    pods = jobsets.start(job.id)
    jobsets.log(pods[0]).append("first\n")
    harness.wait_for(lambda: job.read("main-0/log") == "first\n")
    jobsets.finish(pods[0], code=3)
    time.sleep(1.1)  # kxfs orders pods by their creation time, which has whole seconds
    pods = jobsets.restart(job.id)
    jobsets.run(*pods)
    harness.wait_for(lambda: job.replica("main-0")["attempt"] == 1)
    jobsets.log(pods[0]).append("second\n")
    harness.wait_for(lambda: job.read("main-0/log") == "second\n")
    assert job.read("main-0/log.0") == "first\n"
    harness.wait_for(lambda: job.status()["retries"] == 1, what="the retry in the job's status")
    jobsets.finish(pods[0], code=4)
    jobsets.finish(pods[1])
    jobsets.say(job.id, "Failed", terminalState="Failed")
    assert job.read("wait") == "FAILED\n"
    # The end of the job may arrive before the ends of its pods.
    harness.wait_for(lambda: job.read("why") == "main-0 ended with exit code 4. Retries used: 1; max_retries is 1. "
                                                "Its output is in main-0/log. Its last output:\n    second\n", what="why")


def test_owned(server, make_mount, jobsets):
    """kxfs does not remove a JobSet that a TrainJob would create again. The message names a command that ends the
    TrainJob, unless a shell could misread the name."""
    kx = make_mount(server, source="jobset:test", options="cancel=all")
    for name, owner in (("mine", "train-1"), ("odd", "x; reboot")):
        server.store.add(st.JOBSETS, {
            "metadata": {"name": name, "namespace": "test", "ownerReferences": [
                {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": owner, "uid": f"t-{name}",
                 "controller": True}]},
            "spec": {"replicatedJobs": []}})
        harness.wait_for(lambda name=name: name in kx.ls("jobs"), what="the job")
        assert harness.err_of(os.rmdir, kx / "jobs" / name) == "EPERM"
        assert server.store.find(st.JOBSETS, "test", name)
    assert ("mine: rmdir failed: the job's owner, TrainJob train-1, would create the job again; to "
            "delete both, run kubectl -n test delete TrainJob train-1") in kx.read(".kxfs", "log")
    assert ("odd: rmdir failed: the job's owner, TrainJob x; reboot, would create the job again; delete the owner"
            in kx.read(".kxfs", "log"))
    # A TrainJob whose JobSet has ended has ended too, and creates no further JobSet.
    server.store.change(st.JOBSETS, "test", "mine", lambda tree: tree.update(status={"conditions": [
        {"type": "Completed", "status": "True", "reason": "AllJobsCompleted", "message": "all jobs have completed",
         "lastTransitionTime": "2026-11-28T10:00:00Z"}]}))
    harness.wait_for(lambda: kx.read("jobs", "mine", "state") == "SUCCEEDED\n", what="its end")
    os.rmdir(kx / "jobs" / "mine")
    harness.wait_for(lambda: not server.store.find(st.JOBSETS, "test", "mine"), what="it to go")
