# SPDX-License-Identifier: MIT
"""Mounts of JobSets, on a separate cluster, with the rights of contrib/rbac.yaml. A simulated
controller creates their Jobs, and Kubernetes' own controller runs these."""

import json
import sys
import threading

import api
import pytest
from cluster import HERE, Cluster
from harness import LIMIT, actions, err_of, wait_for, write_ctl
from mounted import HOLD, World, app, begun, ended, phase, role
from process import Part
from story import recordings

sys.path[1:1] = [str(HERE / "controllers"), str(HERE.parent / "golden")]

from golden import Input, load, run  # noqa: E402
from jobset import make_job, make_service, wanted  # noqa: E402
from test_jobset import CASES, options_of  # noqa: E402

DEFINITION = HERE.parent / "replay/data/crds/jobset.yaml"


class JobSets(Cluster):
    """JobSets instead of Volcano's resources."""

    def apply_definitions(self):
        self.kubectl("apply", "--server-side", f"--filename={DEFINITION}")
        wait_for(lambda: self.is_served(api.path_of("jobsets")), what="JobSets to be served")

    def start_volcano(self):
        self.parts["volcano"] = Part("jobset", self.base, [
            sys.executable, HERE / "controllers/jobset.py", self.kubectl_path, self.kubeconfig("volcano")]).start()


class Sets(World):
    resource, label = "jobsets", "jobset.sigs.k8s.io/jobset-name"


@pytest.fixture(scope="module")
def cluster():
    with JobSets() as own:
        yield own


@pytest.fixture
def world(cluster, namespace):
    yield Sets(cluster, namespace)
    cluster.client.delete(api.path_of("jobsets", namespace))


@pytest.fixture
def kx(make_kx, world, limited):
    return make_kx("", source=f"jobset:{world.namespace}", env={"KUBECONFIG": str(limited)})


# --- the simulated controller is like the real one ------------------------------------------------


def recorded(scenario, resource, name):
    """Return the successive versions of objects whose name starts with NAME."""
    ret = []
    for line in recordings.parts(scenario)[resource]:
        item = json.loads(line)["object"]
        if item["metadata"]["name"].startswith(name):
            ret.append(item)
    return ret


def told(jobsets):
    """Return the contents of the conditions, once for each change."""
    ret = []
    for jobset in jobsets:
        says = [tuple(condition[key] for key in ("type", "status", "reason", "message"))
                for condition in (jobset.get("status") or {}).get("conditions", ())]
        if not ret or ret[-1] != says:
            ret.append(says)
    return ret


def words(item, field):
    """Return the labels or annotations of ITEM that JobSet, and Kubernetes for Jobs, have set,
    without values that differ between runs."""
    return {key: None if key.endswith(("-uid", "job-key")) else value
            for key, value in item["metadata"][field].items() if "kueue" not in key and not key.endswith("priority")}


def test_recorded(world):
    """Conditions, labels and names are the same as in the recording."""
    before = recorded("kueue_jobset_success", "jobsets", "app")
    pods = recorded("kueue_jobset_success", "pods", "app")
    client, path = world.cluster.client, world.path("jobsets", "app")
    client.post(world.path("jobsets"), {key: before[0][key] for key in ("apiVersion", "kind", "spec")}
                | {"metadata": {"name": "app"}})
    seen = [client.get(path)]

    def watch():
        version = seen[0]["metadata"]["resourceVersion"]
        for event in client.watch(f"{world.path('jobsets')}?fieldSelector=metadata.name%3Dapp", version, timeout=300):
            if event["type"] != "BOOKMARK":
                seen.append(event["object"])
            if "terminalState" in status():
                return

    def status():
        return seen[-1].get("status", {})

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    wait_for(lambda: status().get("conditions") and status()["replicatedJobsStatus"][0]["suspended"] == 1)
    assert not world.pods("app")
    client.merge(path, {"spec": {"suspend": False}})  # as Kueue does
    watcher.join(LIMIT)
    assert "terminalState" in status()
    assert told([{}, *seen]) == told(before)
    assert seen[-1]["status"]["replicatedJobsStatus"] == before[-1]["status"]["replicatedJobsStatus"]
    assert {key for key in seen[-1]["status"]} == {key for key in before[-1]["status"]}
    for pod, other in zip(sorted(world.pods("app"), key=lambda p: p["metadata"]["name"]),
                          sorted({p["metadata"]["name"]: p for p in pods}.values(), key=lambda p: p["metadata"]["name"]),
                          strict=True):
        assert words(pod, "labels") == words(other, "labels")
        assert words(pod, "annotations") == words(other, "annotations")
        assert [pod["spec"][key] for key in ("hostname", "subdomain")] == [
            other["spec"][key] for key in ("hostname", "subdomain")]


# --- kxfs with JobSets ----------------------------------------------------------------------------


def test_to_the_end(kx, world):
    """Two roles, one with two replicas. Each replica gets its index, and the host of the first one.
    Removing the job removes its Jobs, pods and Service."""
    script = f"echo replica $0 of $(hostname), the first is $1; echo host $TORCHX_RANK0_HOST; {HOLD}"
    roles = [role(script, num_replicas=2), role(script, name="side")]
    for one in roles:
        one["args"] += ["${replica_id}", "$${rank0_env}"]
    job = kx.submit(app(roles=roles))
    spec = world.jobs()[job.id]["spec"]
    assert [(r["name"], r["template"]["spec"]["completions"]) for r in spec["replicatedJobs"]] == [
        ("main", 2), ("side", 1)]
    pods = {name: begun(job, name) for name in ("main-0", "main-1", "side-0")}
    assert job.until("RUNNING") == "RUNNING"
    first = world.cluster.client.get(world.path("pods", pods["main-0"]))["spec"]
    host = f"{first['hostname']}.{first['subdomain']}"
    for name in pods:
        lines = job.read(name, "log").splitlines()
        own, index = name.split("-")
        assert lines[0].startswith(f"replica {index} of {job.id}-{own}-0-{index}, "), lines
        assert lines[1] == f"host {host}"
    service = world.cluster.client.get(world.path("services", first["subdomain"]))
    assert service["spec"]["clusterIP"] == "None" and service["spec"]["publishNotReadyAddresses"] is True
    world.release_all(job.id)
    ended(job)
    phase(job, "Completed")
    for name in pods:
        replica = job.replica(name)
        assert (replica["state"], replica["exit_code"], replica["attempt"]) == ("SUCCEEDED", 0, 0)
        assert job.read(name, "follow").endswith(f"host {host}\nbegin\nend\n")
    assert job.read("why") == ""
    assert job.status()["created"] <= job.status()["started"] <= job.status()["finished"]
    job.cancel()
    world.until_none("jobs.batch", "pods", "services")
    assert not world.jobs() and kx.read("history", job.id, "side-0", "log").endswith("begin\nend\n")


def test_restart(kx, world):
    """After the first failure, all Jobs are created again with the same names, and each replica
    gets another attempt. After the second failure, the job ends, and with it the other replica."""
    job = kx.submit(app(HOLD, num_replicas=2, max_retries=1, retry_policy="APPLICATION"))
    begun(job, "main-1")
    world.release(begun(job), 7)
    for name in ("main-0", "main-1"):
        begun(job, name, 1)
        assert job.read(name, "log.0").startswith("begin\n")
    assert job.read("main-0", "log.0") == "begin\nend\n"
    wait_for(lambda: job.status()["retries"] == 1, what="the retry to be told")
    assert job.status()["max_retries"] == 1
    world.release(begun(job, "main-0", 1), 8)
    ended(job, "FAILED")
    phase(job, "Failed")
    assert job.replica()["exit_code"] == 8 and job.read("main-0", "log") == "begin\nend\n"
    wait_for(lambda: job.replica("main-1")["state"] == "CANCELLED", what="the other to be stopped")
    assert job.read("why").startswith("main-0 ended with exit code 8. Retries used: 1; max_retries is 1.")


def test_pod_deleted(kx, world):
    """Somebody deletes a pod, as the drain of a node does. Its Job then counts a failed replica,
    and all Jobs are created again."""
    job = kx.submit(app(HOLD, num_replicas=2, max_retries=1, retry_policy="APPLICATION"))
    begun(job, "main-1")
    world.kubectl("delete", "pod", begun(job), "--wait=false")
    for name in ("main-0", "main-1"):
        begun(job, name, 1)
        assert job.read(name, "log.0").startswith("begin\n")
    wait_for(lambda: job.status()["retries"] == 1, what="the retry to be told")
    world.kubectl("delete", "pod", begun(job, attempt=1), "--wait=false")
    job.finish("FAILED")
    phase(job, "Failed")
    assert job.status()["reason"] == "ReachedMaxRestarts"
    assert job.read("why") == ("The job failed: jobset failed due to reaching max number of restarts (first failed job: "
                               f"{job.id}-main-0).\n")


def test_ctl(kx, world):
    """ctl offers suspend and resume, and nothing else. Both work."""
    job = kx.submit(app(HOLD))
    begun(job)
    phase(job, "Running")
    assert actions(job) == ["suspend"]
    write_ctl(job, "suspend")
    phase(job, "Suspended")
    assert job.state() == "CANCELLED" and actions(job) == ["resume"] and "resume" in job.read("why")
    wait_for(lambda: not world.pods(job.id), what="its pod to be gone")
    assert job.read("main-0", "log").startswith("begin\n")
    assert err_of(write_ctl, job, "suspend") == "EINVAL"
    assert err_of(write_ctl, job, "terminate") == "ENOTSUP"
    write_ctl(job, "resume")
    pod = begun(job, attempt=1)
    phase(job, "Running")
    world.release(pod)
    job.finish()
    phase(job, "Completed")
    assert job.read("main-0", "log.0").startswith("begin\n") and job.read("main-0", "log") == "begin\nend\n"
    assert actions(job) == []


def test_of_others(kx, world):
    """A JobSet that somebody else created: a replicated job of two Jobs with two pods each."""
    pod = {"restartPolicy": "Never", "containers": [{
        "name": "c", "image": "docker.io/library/busybox:1.35", "command": ["sh", "-c", HOLD]}]}
    world.cluster.client.post(world.path("jobsets"), {
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "theirs"},
        "spec": {"replicatedJobs": [{"name": "node", "replicas": 2, "template": {"spec": {
            "backoffLimit": 0, "completionMode": "Indexed", "completions": 2, "parallelism": 2,
            "template": {"spec": pod}}}}]}})
    wait_for(lambda: "theirs" in kx.ls("jobs"))
    (job,) = kx.jobs()
    names = [f"node.{i}-{k}" for i in range(2) for k in range(2)]
    for name in names:
        begun(job, name)
    world.release_all(job.id)
    ended(job)
    for name in names:
        assert job.read(name, "log") == "begin\nend\n"


def refusals(world, jobset):
    """Yield the server's refusals of this JobSet, and of the Job and the Service that are created
    for it."""
    jobset["metadata"].update(namespace=world.namespace, uid="u")
    made = [("jobs.batch", make_job(jobset, replicated, index, 0)) for replicated, index in wanted(jobset)]
    for _, job in made:
        del job["metadata"]["ownerReferences"]
    service = make_service(jobset)
    del service["metadata"]["ownerReferences"], jobset["metadata"]["uid"]
    for resource, item in (("jobsets", jobset), ("services", service), *made):
        try:
            world.cluster.client.post(f"{world.path(resource)}?dryRun=All&fieldValidation=Strict", item)
        except api.Refused as e:
            yield resource, e.message


def test_all_accepted(world):
    """The server accepts every AppDef of tests/golden that becomes a JobSet, and the Jobs and the
    Service of that JobSet."""
    made, refused = 0, {}
    for name in CASES:
        source = Input(name)
        options, namespace = options_of(source)
        status, text, _ = run("jobset", source.path, namespace, options)
        if status == 0:
            made += 1
            refused |= {(name, resource): message for resource, message in refusals(world, load(text))}
    assert made > len(CASES) / 2
    assert {name for name, _ in refused} == {"207-new-overlay-flat-spec"}, refused
    assert all('unknown field "spec.' in message and "noSuchField" in message for message in refused.values())
