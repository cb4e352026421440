# SPDX-License-Identifier: MIT
"""Mounts of a cluster with MCAD: a job from its submission to its end, requeued jobs, names of wrapped objects and
roles, the default kind, and refusals."""

import json
import time

import harness
import pytest
import store as st
import yaml
from fakes import FakeMcad
from submitting import error_of
from test_start import said  # noqa: F401

APP = json.dumps({"name": "app", "roles": [{
    "name": "main", "image": "i", "entrypoint": "e", "num_replicas": 2, "max_retries": 1}]})


@pytest.fixture
def server(server):
    server.uninstall(*st.VOLCANO)
    server.install(st.APPWRAPPERS)
    return server


@pytest.fixture
def mcad(server):
    return FakeMcad(server)


@pytest.fixture
def kx(make_mount, server, mcad):
    del mcad
    return make_mount(server, source="mcad:test")


def test_from_submission_to_end(kx, server, mcad):
    kx.write("submit/app.yaml", APP)
    job = kx.job_of("app.yaml")
    assert job.status()["backend"] == "mcad"
    harness.wait_for(lambda: job.state() == "PENDING")
    assert job.read("why") == "The job waits in MCAD's queue until the jobs ahead of it have been dispatched.\n"
    manifest = yaml.safe_load(job.read("manifest.yaml"))
    assert (manifest["apiVersion"], manifest["kind"]) == ("workload.codeflare.dev/v1beta1", "AppWrapper")
    mcad.say(job.id, "Pending", "Backoff", "AppWrapperNotRunnable.",
             "Insufficient resources to dispatch AppWrapper.")
    harness.wait_for(lambda: job.read("why") == (
        "MCAD can't dispatch the job yet, and retries automatically: "
        "Insufficient resources to dispatch AppWrapper.\n"), what="why")
    pods = mcad.dispatch(job.id)
    mcad.run(*pods)
    job.until("RUNNING")
    mcad.log(pods[1]).append("hello\n")
    harness.wait_for(lambda: job.read("main-1/log") == "hello\n")
    for pod in pods:
        mcad.finish(pod)
    assert job.read("wait") == "SUCCEEDED\n"
    assert job.read("log") == "main/1 hello\n"
    assert server.store.find(st.APPWRAPPERS, "test", job.id).tree()["status"]["state"] == "Running"


def test_again_by_hand(kx, server):
    """If the names of the wrapped objects don't depend on the job's name, a second job can't run at the same time, but
    it can run afterwards."""
    text = json.dumps({
        "apiVersion": "workload.codeflare.dev/v1beta1", "kind": "AppWrapper", "metadata": {"name": "mine"},
        "spec": {"resources": {"GenericItems": [{"replicas": 1, "generictemplate": {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "worker"},
            "spec": {"containers": [{"name": "c", "image": "i"}]}}}]}}})
    kx.write("submit/mine.yaml", text)
    assert harness.err_of(kx.write, "submit/again.yaml", text) == "EEXIST"
    assert error_of(kx, "again.yaml") == (
        "again.yaml:1:93: metadata.name: the existing job mine already contains Pod worker. Choose other names "
        "for the job and for this object. Nothing was launched\n")
    assert len(server.store.objects(st.APPWRAPPERS)[0]) == 1
    harness.Job(kx, "mine").cancel()
    kx.write("submit/again.yaml", text)
    assert len(server.store.objects(st.APPWRAPPERS)[0]) == 1


def test_requeued(kx, mcad):
    """A requeued job gets new pods. They are another attempt with another log, and the old log remains."""
    kx.write("submit/app.yaml", APP)
    job = kx.job_of("app.yaml")
    pods = mcad.dispatch(job.id)
    mcad.run(*pods)
    job.until("RUNNING")
    mcad.log(pods[0]).append("first\n")
    harness.wait_for(lambda: job.read("main-0/log") == "first\n")
    mcad.finish(pods[0], code=3)
    harness.wait_for(lambda: job.replica("main-0")["state"] == "FAILED")
    assert job.state() == "RUNNING"  # MCAD will requeue it
    assert job.read("why") == ("main-0 ended with exit code 3. Retries used: 0; max_retries is "
                               "1. MCAD restarts the whole job automatically after some "
                               "minutes.\n")
    time.sleep(1.1)  # kxfs orders pods by their creation time, which has whole seconds
    mcad.requeue(job.id)
    job.until("PENDING")
    pods = mcad.dispatch(job.id)
    mcad.run(*pods)
    job.until("RUNNING")
    harness.wait_for(lambda: job.replica("main-0")["attempt"] == 1)
    mcad.log(pods[0]).append("second\n")
    harness.wait_for(lambda: job.read("main-0/log") == "second\n")
    assert job.read("main-0/log.0") == "first\n"
    harness.wait_for(lambda: job.status()["retries"] == 1, what="the retry in the job's status")
    mcad.finish(pods[0], code=4)
    mcad.finish(pods[1], code=0)
    assert job.read("wait") == "FAILED\n"
    assert job.read("why") == ("main-0 ended with exit code 4. Retries used: 1; max_retries is 1. Its output is in "
                               "main-0/log. Its last output:\n    second\n")


# --- the default kind ---


def info(kx):
    return yaml.safe_load(kx.read(".kxfs", "info"))


@pytest.mark.parametrize("source, option, what", [
    ("test", "queue=research", "-o queue: mcad has no such run option; its run options are "),
    ("mcad:test", "queue=research", "-o queue: mcad has no such run option; its run options are "),
    ("test", "reserved_memmb=0,image_secret=s", "-o reserved_memmb: mcad has no such run option; its run options are ")])
def test_option_of_another_kind(said, server, source, option, what):  # noqa: F811
    """If only the cluster determines the kind, a wrong option ends the start, instead of failing each submission."""
    text = said(source=source, options=option)
    assert text.startswith("kxfs: " + what) and text.endswith(
        "\nThis mount shows appwrappers of workload.codeflare.dev/v1beta1: leave " + what.split(":")[0] + " out.\n")


def test_successor(kx, server, mcad):
    """AppWrapper v1beta2 replaces MCAD while kxfs is mounted. Existing objects are read in the new version, all
    other jobs are gone, and submitted files become jobs of the new kind."""
    kx.submit(APP)
    stays = server.store.find(st.APPWRAPPERS, "test", kx.submit(APP).id).tree()
    assert info(kx)["kinds"][0]["api"] == "workload.codeflare.dev/v1beta1"
    server.uninstall(st.APPWRAPPERS)
    server.install(st.NEW_APPWRAPPERS)
    mcad.keep_pods = True
    server.store.add(st.NEW_APPWRAPPERS, {
        **stays, "apiVersion": st.NEW_APPWRAPPERS.api_version, "status": {"phase": "Running"},
        "spec": {"components": [{"template": item["generictemplate"]}
                                for item in stays["spec"]["resources"]["GenericItems"]]}})
    server.end_streams("end", verb="watch", resource="appwrappers")
    # For a moment kxfs shows neither kind.
    harness.wait_for(lambda: [kind["api"] for kind in info(kx)["kinds"]] == ["workload.codeflare.dev/v1beta2"] and info(kx)["connected"],
                     what="the other kind")
    name = stays["metadata"]["name"]
    harness.wait_for(lambda: kx.ls("jobs") == [name], what="the job of the other kind")
    assert harness.Job(kx, name).status()["phase"] == "Running"
    kx.write("submit/new.yaml", APP)
    made = server.store.find(st.NEW_APPWRAPPERS, "test", kx.job_of("new.yaml").id)
    assert "components" in made.tree()["spec"]


def test_nothing_is_served(said, server):  # noqa: F811
    server.uninstall(st.APPWRAPPERS)
    assert said(source="mcad:test") == (
        "kxfs: the cluster serves no AppWrappers\nCheck that this is the right cluster, or ask the cluster's administrator to install them.\n")
    assert said(source="test") == (
        "kxfs: the cluster serves no jobs that kxfs can show\n"
        "Check that this is the right cluster, or ask the cluster's administrator to install them.\n")


@pytest.mark.parametrize("role", ["\x1b]0;owned\x07", "a\nworker/0 all is well\nb", "\u009b31m", "x" * 400])
def test_any_role(kx, server, mcad, role):
    """The role of a wrapped pod comes from a label that nobody checks. Even with odd values, the merged log has clean
    prefixes and loses no line."""
    items = [{"generictemplate": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p-{i}", "labels": {
        "torchx.pytorch.org/role-name": role, "torchx.pytorch.org/replica-id": str(i)}},
        "spec": {"containers": [{"name": "main", "image": "i"}]}}} for i in range(2)]
    server.store.add(st.APPWRAPPERS, {"metadata": {"name": "theirs", "namespace": "test"},
                                      "spec": {"resources": {"GenericItems": items}}})
    mcad.dispatch("theirs")
    for pod in mcad.start("theirs"):
        mcad.log(pod).append("hello\n")
    job = harness.Job(kx, "theirs")
    harness.wait_for(lambda: "theirs" in kx.ls("jobs"), what="the job")
    harness.wait_for(lambda: job.read("log").count("hello") == 2, what="the lines")
    for name in ("log", "stamped"):
        text = job.read(name)
        assert all(line.isprintable() for line in text.split("\n"))
        assert text.count("\n") == 2
