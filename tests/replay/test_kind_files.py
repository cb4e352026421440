# SPDX-License-Identifier: MIT
"""Jobs of kinds that only a file describes (share/kinds/), on a mount: recordings of the real operators, ctl,
removal, ready manifests."""

import json
import os
import re
import threading

import harness
import pytest
import recordings
import store as st
import watching
import yaml
from harness import ROOT, run, write_ctl
from kinds import FILES, KINDS

RESOURCES = {name: resource for name, resource in st.KIND_FILES.items() if name not in ("job", "jobset")}
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


def play(server, kind, name, until=lambda tree: False):
    for step in recordings.story(kind, name, {"Pod": st.PODS, RESOURCES[kind].kind: RESOURCES[kind]}):
        recordings.apply(server.store, step)
        if step.resource is RESOURCES[kind] and until(step.tree):
            break


@pytest.mark.parametrize(("kind", "name", "job", "state", "replicas"), [
    ("pytorchjob", "success", "ok", "SUCCEEDED", {"master-0": "SUCCEEDED", "worker-0": "SUCCEEDED", "worker-1": "SUCCEEDED"}),
    ("workflow", "dag-items", "graph", "SUCCEEDED", {"A-0": "SUCCEEDED", "B(0:one)-0": "SUCCEEDED", "B(1:two)-0": "SUCCEEDED",
                                                    "C-0": "SUCCEEDED"}),
])
def test_recorded(server, make_mount, kind, name, job, state, replicas):
    """A mount of all kinds shows a job with the result that its operator reports, and with the pods as replicas."""
    kx = make_mount(server, source="test")
    play(server, kind, name)
    harness.wait_for(lambda: job in kx.ls("jobs") and harness.Job(kx, job).state() == state, what=state)
    assert harness.Job(kx, job).status()["kind"] == kind
    harness.wait_for(lambda: {f"{role['name']}-{r['id']}": r["state"] for role in harness.Job(kx, job).status()["roles"]
                              for r in role["replicas"]} == replicas, what="the replicas")


def test_each_kind_can_be_suspended():
    """Each shipped kind file names the field that suspends a job (`ctl.suspend`), and KINDS has each kind."""
    assert {name for name, kind in FILES.items() if kind["ctl"]["suspend"]} == set(KINDS) == set(FILES)


@pytest.mark.parametrize("name", KINDS)
def test_suspend_and_resume(server, make_mount, name):
    """The kind file names the field that suspends a job. ctl sets it to true, then to false. The request has the
    resource version that kxfs has read last. kxfs shows what the controller then reports. A new job from a copy of
    the manifest is not suspended."""
    kind = KINDS[name]
    tree = kind.job()
    server.install(kind.resource)
    server.store.put(kind.resource, {**tree, "status": kind.runs})
    kx = make_mount(server, options="cancel=all", source=f"{name}:test")
    job = harness.Job(kx, tree["metadata"]["name"])
    harness.wait_for(lambda: kx.ls("jobs") == [job.id] and job.status()["phase"], what="the job")
    before = job.status()["phase"]
    assert "suspend" in harness.actions(job) and "resume" not in harness.actions(job)

    def does(word, value, status):
        """Write WORD to ctl. The controller then reacts to the patch with STATUS."""
        version, n = str(server.store.find(kind.resource, "test", job.id).version), server.count(verb="patch")
        writer = harness.popen(["sh", "-c", f"echo {word} >{job.dir}/ctl"])
        harness.wait_for(lambda: kind.value(server.store.find(kind.resource, "test", job.id).tree()) is value, what="the patch")
        patch, = (json.loads(req.body) for req in server.seen(verb="patch")[n:])
        wanted = {"metadata": {"uid": tree["metadata"]["uid"], "resourceVersion": version}}
        kind.set(wanted, value)
        assert patch == wanted
        server.store.change(kind.resource, "test", job.id, lambda tree: tree.update(status=status))
        assert writer.wait(timeout=harness.LIMIT) == 0

    does("suspend", True, kind.suspended)
    harness.wait_for(lambda: (job.state(), job.status()["phase"]) == (kind.state, kind.shown), what=kind.shown)
    assert harness.actions(job) == ["resume"]
    assert "resume" in job.read("why")
    does("resume", False, kind.runs)
    harness.wait_for(lambda: job.status()["phase"] == before and "suspend" in harness.actions(job), what="resumed")
    assert "suspended" not in job.read("why") and job.status()["pending_command"] is None
    server.store.change(kind.resource, "test", job.id, lambda tree: kind.set(tree, True))
    harness.wait_for(lambda: f"{kind.path[-1]}: true" in job.read("manifest.yaml"), what="its manifest")
    kx.write("submit/again.yaml", job.read("manifest.yaml"))
    again, = (o.tree() for o in server.store.objects(kind.resource)[0] if o.name != job.id)
    assert kind.path[-1] not in str(again["spec"])


def test_no_ctl(server, make_mount, tmp_path):
    """A kind file without `ctl`: its jobs can't be suspended, and a write to their ctl is refused with the reason."""
    (tmp_path / "trainrun.yaml").write_text(example().replace("ctl: {suspend: .spec.suspend}\n", ""))
    server.install(TRAINRUNS)
    server.store.put(TRAINRUNS, RUN)
    kx = make_mount(server, options=f"kinds={tmp_path},cancel=all", source="trainrun:test")
    job = harness.Job(kx, "run")
    harness.wait_for(lambda: kx.ls("jobs") == ["run"], what="the job")
    assert harness.actions(job) == []
    assert harness.err_of(write_ctl, job, "suspend") == "ENOTSUP"
    assert "run/ctl: jobs of this kind do not support this action" in kx.read(".kxfs", "log")


def test_workflow(server, make_mount):
    """Replicas appear with the pods of the steps. A suspended workflow is PENDING. `terminate` in
    ctl sets the field `shutdown` to a word."""
    kx = make_mount(server, options="cancel=all", source="workflow:test")
    play(server, "workflow", "success-steps", until=lambda tree: tree.get("status", {}).get("phase") == "Running")
    job = harness.Job(kx, "steps")
    harness.wait_for(lambda: kx.ls("jobs") == ["steps"] and "0prepare-0" in os.listdir(job.dir), what="the first step")
    resource = st.KIND_FILES["workflow"]
    thread = threading.Thread(target=write_ctl, args=(job, "suspend"))
    thread.start()
    thread.join()
    harness.wait_for(lambda: "Paused" in kx.read(job.dir, "status") and "until the job is resumed" in kx.read(job.dir, "why"),
                     what="Paused")
    write_ctl(job, "resume")
    thread = threading.Thread(target=write_ctl, args=(job, "terminate"))
    thread.start()
    harness.wait_for(lambda: server.store.find(resource, "test", "steps").tree()["spec"].get("shutdown") == "Terminate",
                     what="the patch")
    thread.join()
    play(server, "workflow", "success-steps")
    harness.wait_for(lambda: job.state() == "SUCCEEDED", what="SUCCEEDED")
    harness.wait_for(lambda: {name for name in os.listdir(job.dir) if name.endswith("-0")} ==
                     {"0prepare-0", "1train-a-0", "1train-b-0"}, what="the pods of all steps")
    assert "nodes" not in kx.read(job.dir, "manifest.yaml")


def test_submit(server, make_mount):
    """kxfs submits a ready manifest unchanged, except that its pods get the submitter's label. An AppDef can't
    become a job of such a kind."""
    kx = make_mount(server, source="pytorchjob:test")
    kx.write("submit/train.yaml", json.dumps(MANIFEST))
    sent = server.store.find(st.PYTORCHJOBS, "test", "train").tree()
    assert all(spec["template"]["metadata"]["labels"]["kxfs/user"] for spec in sent["spec"]["pytorchReplicaSpecs"].values())
    harness.wait_for(lambda: kx.ls("jobs") == ["train"], what="the job")
    with pytest.raises(OSError):
        kx.write("submit/app.yaml", yaml.dump({"name": "a", "roles": [{"name": "r", "image": "i", "entrypoint": "e"}]}))
    assert "for PyTorchJobs, write a Kubernetes manifest" in kx.read("submit/app.yaml.error")


TRAINRUNS = st.Resource("example.com", "v1", "trainruns", "TrainRun")
RUN = {
    "apiVersion": "example.com/v1", "kind": "TrainRun",
    "metadata": {"name": "run", "namespace": "test", "uid": "r-1", "creationTimestamp": "2026-11-21T09:00:00Z"},
    "spec": {"driver": {"spec": {"containers": [{"name": "main"}]}},
             "groups": [{"name": "Actor", "size": 2, "template": {"spec": {"containers": [{"name": "main"}]}}}]},
    "status": {"phase": "Active"},
}


def example():
    """Return the example in kxfs-kind(5)."""
    return re.search(r"^\.Bd .*?\n(format.*?)^\.Ed", (ROOT / "docs/kxfs-kind.5").read_text(), re.S | re.M)[1]


def pod(name, role, index):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {
        "name": name, "namespace": "test", "uid": name, "creationTimestamp": "2026-11-21T09:00:01Z",
        "labels": {"example.com/run": "run", "example.com/role": role, "example.com/index": str(index)},
        "ownerReferences": [{"apiVersion": "example.com/v1", "kind": "TrainRun", "name": "run", "uid": "r-1",
                             "controller": True}]},
            "spec": {"containers": [{"name": "main"}]}, "status": {"phase": "Pending"}}


def test_own_file(server, make_mount, tmp_path):
    """A user's own kind file is enough to show jobs of another kind."""
    (tmp_path / "trainrun.yaml").write_text(example())
    (tmp_path / "README").write_text("this is not a kind")
    server.install(TRAINRUNS)
    server.store.put(TRAINRUNS, RUN)
    for name, role, index in (("d", "driver", 0), ("a0", "Actor", 0), ("a1", "Actor", 1)):
        server.store.put(st.PODS, pod(name, role, index))
    kx = make_mount(server, options=f"kinds={tmp_path}", source="test")
    assert {"kind": "trainrun", "api": "example.com/v1", "own_file": True} in yaml.safe_load(kx.read(".kxfs", "info"))["kinds"]
    harness.wait_for(lambda: kx.ls("jobs") == ["run"] and harness.Job(kx, "run").state() == "PENDING", what="PENDING")
    assert {name for name in os.listdir(harness.Job(kx, "run").dir) if "-" in name} == {"driver-0", "actor-0", "actor-1"}
    server.store.change(TRAINRUNS, "test", "run", lambda tree: tree["status"].update(phase="Done"))
    harness.wait_for(lambda: harness.Job(kx, "run").state() == "SUCCEEDED", what="SUCCEEDED")


@pytest.mark.parametrize(("text", "says"), [
    (lambda: example().replace("roles:", "rolls:"), "trainrun.yaml:5:1: rolls: no such key; did you mean roles?"),
    (lambda: example().replace("name: trainrun", "name: job"), "job is a built-in kind and can't be replaced: choose another name"),
    (lambda: example().replace("example.com/v1, kind: TrainRun", "batch/v1, kind: Job"),
     "the kind job also describes batch/v1 Job: remove this file or that kind"),
])
def test_mistake(server, make_kx, tmp_path, text, says):
    """An error in a kind file ends the start. The message has the position of the error."""
    del server
    (tmp_path / "trainrun.yaml").write_text(text())
    kx = make_kx(start=False)
    p = run([kx.binary, "-o", f"kinds={tmp_path}", "test", kx.mnt], check=False, env=kx.env())
    assert p.returncode == 1 and says in p.stderr


def test_check_kind(make_kx, tmp_path):
    """`kxfs --check-kind` prints without a mount what a mount would show. It ignores pods of other jobs."""
    files = [tmp_path / name for name in ("kind.yaml", "run.json", "pods.json")]
    other = pod("x", "Actor", 0)
    other["metadata"]["ownerReferences"][0]["uid"] = "r-2"
    for path, text in zip(files, (example(), json.dumps(RUN), json.dumps({"items": [pod("a1", "Actor", 1), other]}))):
        path.write_text(text)
    kx = make_kx(start=False)
    p = run([kx.binary, f"--check-kind={files[0]}"], check=False, env=kx.env())
    assert p.returncode == 0 and p.stdout == f"{files[0]}: no mistakes\n"
    p = run([kx.binary, f"--check-kind={files[0]}", *files[1:]], check=False, env=kx.env())
    status = yaml.safe_load(p.stdout)
    assert (status["kind"], status["state"], [role["name"] for role in status["roles"]]) == (
        "trainrun", "PENDING", ["driver", "actor"])
    assert [rep["pod"] for rep in status["roles"][1]["replicas"]] == ["", "a1"]
    # The pod belongs to a part of the job.
    files[0].write_text(example() + "parts: [{api: apps/v1, kind: ReplicaSet, plural: replicasets}]\n")
    part = {"kind": "ReplicaSet", "metadata": {"name": "set", "uid": "s-1",
                                               "ownerReferences": pod("a1", "Actor", 1)["metadata"]["ownerReferences"]}}
    below = pod("a0", "Actor", 0)
    below["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "set", "uid": "s-1", "controller": True}]
    files[2].write_text(json.dumps({"items": [pod("a1", "Actor", 1), part, below]}))
    p = run([kx.binary, f"--check-kind={files[0]}", *files[1:]], check=False, env=kx.env())
    assert [rep["pod"] for rep in yaml.safe_load(p.stdout)["roles"][1]["replicas"]] == ["a0", "a1"]


PAGE = (ROOT / "docs/your-kind.md").read_text()


def page_files(folder):
    """Write the files that docs/your-kind.md shows into FOLDER."""
    for name, text in re.findall(r"^`([\w.-]+)`.*?:\n\n```\w+\n(.*?)^```", PAGE, re.S | re.M):
        (folder / name).write_text(text)


def matches(wanted, seen):
    """True if SEEN is equal to WANTED. A line "..." in WANTED matches any number of lines."""
    parts = [re.escape(part) for part in wanted.split("...\n")]
    return re.fullmatch(r"(?:.*\n)*".join(parts), seen)


def test_page(tmp_path, binary):
    """Each command in docs/your-kind.md prints the output that the page shows."""
    page_files(tmp_path)
    path = tmp_path / "bin"
    path.mkdir()
    (path / "kxfs").symlink_to(binary)
    shown = re.findall(r"^\$ (.*)\n((?:(?!\$ |```).*\n)*)", "".join(re.findall(r"^```console\n(.*?)^```", PAGE, re.S | re.M)), re.M)
    assert len(shown) == 4
    for command, wanted in shown:
        p = run(["sh", "-c", command], check=False, cwd=tmp_path, env={**os.environ, "PATH": f"{path}:{os.environ['PATH']}"})
        assert matches(wanted, p.stdout + p.stderr), p.stdout + p.stderr


def test_page_on_a_mount(server, make_mount, tmp_path):
    """The kind file in docs/your-kind.md is enough to show such jobs, without code in C. Each row of its states is
    shown."""
    page_files(tmp_path)
    kind = yaml.safe_load((tmp_path / "broadcastjob.yaml").read_text())
    resource = st.Resource(*kind["object"]["api"].split("/"), kind["object"]["plural"], kind["object"]["kind"])
    server.install(resource)
    server.store.put(resource, json.loads((tmp_path / "job.json").read_text()))
    for item in json.loads((tmp_path / "pods.json").read_text())["items"]:
        server.store.put(st.PODS, {"apiVersion": "v1", "kind": "Pod", **item})
    kx = make_mount(server, options=f"kinds={tmp_path},cancel=all", source="test")
    job = harness.Job(kx, "check-disks")
    harness.wait_for(lambda: "check-disks" in kx.ls("jobs") and {"node-0", "node-1"} <= set(os.listdir(job.dir)), what="replicas")

    def becomes(state, shown, **status):
        server.store.change(resource, "test", "check-disks", lambda tree: tree["status"].update(status))
        harness.wait_for(lambda: (job.state(), job.status()["phase"]) == (state, shown), what=shown)

    ended = [{"type": "Complete", "status": "True"}]
    becomes("RUNNING", "Paused", phase="paused")
    becomes("RUNNING", "Running", phase="running")
    becomes("FAILED", "Incomplete", phase="completed", conditions=ended)
    becomes("SUCCEEDED", "Complete", failed=0)
    becomes("FAILED", "Failed", phase="failed", conditions=[
        {"type": "Failed", "status": "True", "reason": "Failed", "message": "the job was active longer than specified deadline"}])
    assert job.status()["message"] == "the job was active longer than specified deadline"
    run(["rm", "-r", job.dir])
    harness.wait_for(lambda: not server.store.find(resource, "test", "check-disks"), what="the removal")


JOBFLOW = """\
format: kxfs-kind/1
name: jobflow
object: {api: flow.volcano.sh/v1alpha1, kind: JobFlow, plural: jobflows}
pods_have: volcano.sh/job-name
parts: [{api: batch.volcano.sh/v1alpha1, kind: Job, plural: jobs}]
roles: from_pods
pods: {role: label volcano.sh/job-name, index: name}
phase: .status.state.phase
states:
- {if: {phase: Succeed}, is: succeeded}
- {if: {phase: Failed}, is: failed}
- {if: {phase: Terminating}, is: ending}
- {if: {phase: Running}, is: running}
- {if: {phase: Pending}, is: pending}
"""


@pytest.mark.parametrize("source", ["test", "jobflow:test"])
def test_part_is_of_a_kind_in_c(server, make_mount, tmp_path, source):
    """Volcano's JobFlow creates Volcano Jobs. A mount that shows JobFlows shows these Jobs as parts, with their
    pods. It shows other Volcano Jobs as jobs."""
    (tmp_path / "jobflow.yaml").write_text(JOBFLOW)
    flows = st.Resource("flow.volcano.sh", "v1alpha1", "jobflows", "JobFlow")
    server.install(flows, *st.VOLCANO)
    flow = server.store.add(flows, {"metadata": {"name": "flow", "namespace": "test"}, "spec": {"flows": [{"name": "a"}, {"name": "b"}]},
                                    "status": {"state": {"phase": "Running"}}})
    owner = {"apiVersion": flows.api_version, "kind": flows.kind, "name": "flow", "uid": flow.uid, "controller": True}
    for name, owners in (("flow-a", [owner]), ("flow-b", [owner]), ("other", [])):
        job = server.store.add(st.JOBS, watching.job(name, "Running", ownerReferences=owners))
        server.store.add(st.PODS, watching.pod(job, "main", 0, "Running"))
    kx = make_mount(server, options=f"kinds={tmp_path}", source=source)
    job = harness.Job(kx, "flow")
    shown = ["flow", "other"] if source == "test" else ["flow"]
    harness.wait_for(lambda: kx.ls("jobs") == shown and {"flow-a-0", "flow-b-0"} <= set(os.listdir(job.dir)), what="the parts' pods")
    assert {r["name"]: r["running"] for r in job.status()["roles"]} == {"flow-a": 1, "flow-b": 1}
    server.store.change(flows, "test", "flow", lambda tree: tree["status"]["state"].update(phase="Succeed"))
    harness.wait_for(lambda: job.state() == "SUCCEEDED", what="SUCCEEDED")
    assert kx.ls("jobs") == shown


def test_requests_without_operators(server, make_mount):
    """In a cluster that serves only Jobs, a mount of all kinds sends the same requests as a mount of Jobs, and one
    request for discovery."""
    server.uninstall(*RESOURCES.values())

    def asked(source):
        before = len(server.seen())
        make_mount(server, source=source)
        harness.wait_for(lambda: len([r for r in server.seen()[before:] if r.is_(verb="watch")]) == 3, what="the watches")
        return sorted((r.method, r.path) for r in server.seen()[before:])

    jobs, all_kinds = asked("job:test"), asked("test")
    assert all_kinds == jobs and jobs.count(("GET", "/apis")) == 1
