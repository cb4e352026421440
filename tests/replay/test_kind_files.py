# SPDX-License-Identifier: MIT
"""Jobs of kinds that only a file describes (share/kinds/), on a mount: what was recorded of the real operators, ctl, removal,
ready manifests."""

import json
import threading

import harness
import pytest
import recordings
import store as st
import yaml
from harness import ROOT, write_ctl

RESOURCES = {"pytorchjob": st.PYTORCHJOBS, "tfjob": st.TFJOBS, "xgboostjob": st.XGBOOSTJOBS}
MANIFEST = {
    "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "train"},
    "spec": {"pytorchReplicaSpecs": {
        role: {"replicas": n, "template": {"spec": {"containers": [{"name": "pytorch", "image": "busybox"}]}}}
        for role, n in (("Master", 1), ("Worker", 2))}},
}


@pytest.fixture
def server(server):
    server.uninstall(*st.VOLCANO)
    server.install(st.BATCH_JOBS, *RESOURCES.values())
    return server


def story(kind, name):
    """The steps of a recorded story: its jobs and pods."""
    found = False
    for line in (ROOT / f"tests/kinds/recordings/{kind}.jsonl").read_text().splitlines():
        row = json.loads(line)
        if "story" in row:
            found = row["story"] == name
        elif found and row["object"]["kind"] in ("Pod", RESOURCES[kind].kind):
            row["object"]["metadata"]["namespace"] = "test"
            resource = st.PODS if row["object"]["kind"] == "Pod" else RESOURCES[kind]
            yield recordings.Step(resource, row["type"], row["object"])


def play(server, kind, name, until=lambda tree: False):
    for step in story(kind, name):
        recordings.apply(server.store, step)
        if step.resource is RESOURCES[kind] and until(step.tree):
            break


def is_true(condition):
    return lambda tree: any(c["type"] == condition and c["status"] == "True"
                            for c in tree.get("status", {}).get("conditions", []))


@pytest.mark.parametrize(("kind", "name", "job", "state", "replicas"), [
    ("pytorchjob", "success", "ok", "SUCCEEDED", {"master-0": "SUCCEEDED", "worker-0": "SUCCEEDED", "worker-1": "SUCCEEDED"}),
    ("pytorchjob", "failure-never", "bad", "FAILED", {"master-0": "RUNNING", "worker-0": "FAILED", "worker-1": "FAILED"}),
    ("tfjob", "failure", "tf", "FAILED", None),
    ("xgboostjob", "success", "xgb", "SUCCEEDED", None),
])
def test_recorded(server, make_mount, kind, name, job, state, replicas):
    """A mount of all kinds shows what the operator has done, with the pods as replicas."""
    kx = make_mount(server, source="test")
    play(server, kind, name)
    harness.wait_for(lambda: job in kx.ls("jobs") and harness.Job(kx, job).state() == state, what=state)
    status = harness.Job(kx, job).status()
    assert status["kind"] == kind
    if replicas:
        harness.wait_for(lambda: {f"{role['name']}-{r['id']}": r["state"] for role in harness.Job(kx, job).status()["roles"]
                                  for r in role["replicas"]} == replicas, what="the replicas")


def spec(server):
    return server.store.find(st.PYTORCHJOBS, "test", "gone").tree()["spec"]


def test_suspend(server, make_mount):
    """ctl sets the field that the file names, of the job as it was read."""
    kx = make_mount(server, options="cancel=all", source="pytorchjob:test")
    play(server, "pytorchjob", "delete", until=is_true("Running"))
    harness.wait_for(lambda: kx.ls("jobs") == ["gone"] and harness.Job(kx, "gone").state() == "RUNNING", what="RUNNING")
    thread = threading.Thread(target=write_ctl, args=(harness.Job(kx, "gone"), "suspend"))
    thread.start()
    harness.wait_for(lambda: spec(server).get("runPolicy", {}).get("suspend") is True, what="the patch")
    server.store.change(st.PYTORCHJOBS, "test", "gone", lambda tree: tree["status"].update(conditions=[
        {"type": "Suspended", "status": "True", "reason": "PyTorchJobSuspended"}]))
    thread.join()
    harness.wait_for(lambda: harness.Job(kx, "gone").state() == "CANCELLED", what="CANCELLED")


def test_submit(server, make_mount):
    """A ready manifest is sent, its pods get the label of who submitted it; an AppDef can't become such a job."""
    kx = make_mount(server, source="pytorchjob:test")
    kx.write("submit/train.yaml", json.dumps(MANIFEST))
    sent = server.store.find(st.PYTORCHJOBS, "test", "train").tree()
    assert all(spec["template"]["metadata"]["labels"]["kxfs/user"] for spec in sent["spec"]["pytorchReplicaSpecs"].values())
    harness.wait_for(lambda: kx.ls("jobs") == ["train"], what="the job")
    with pytest.raises(OSError):
        kx.write("submit/app.yaml", yaml.dump({"name": "a", "roles": [{"name": "r", "image": "i", "entrypoint": "e"}]}))
    assert "PyTorchJobs are submitted as ready manifests" in kx.read("submit/app.yaml.error")


def test_default_kind(server, make_mount):
    """A file without a scheduler becomes a Job, also where PyTorchJobs are shown."""
    info = yaml.safe_load(make_mount(server, source="test").read(".kxfs", "info"))
    assert info["default_kind"] == "job" and [k["kind"] for k in info["kinds"]] == ["job", *RESOURCES]
