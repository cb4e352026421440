# SPDX-License-Identifier: MIT
"""Jobs of a mount on a real cluster: with ordinary tools from submission to end, with ctl, and with
the option `mine`."""

import json
import os
import pathlib

import api
import harness
import pytest
import yaml
from harness import actions, err_of, popen, run, wait_for, write_ctl
from mounted import HOLD, IMAGE, app, begun, ended, phase, refused, role, running

# --- Lives ------------------------------------------------------------------------------------
# Jobs of a mount on a real cluster, from their submission to their end, with ordinary tools.


def states(lines, ident):
    """Return the states of job IDENT in lines of `changes`, each once, starting with Volcano's
    first."""
    seen = []
    for line in lines:
        fields = line.split("\t")
        if fields[1] == ident and fields[2] not in ("SUBMITTED", *seen[-1:]):
            seen.append(fields[2])
    return seen


def test_to_the_end(kx, world):
    """cp launches a job. `changes` reports every state, and at the end all files are complete."""
    watcher = popen(["cat", str(kx / "changes")], stdout=open(kx.base / "changes", "wb"))
    wait_for(lambda: "\tSYNC" in (kx.base / "changes").read_text(), what="cat to have begun")
    (kx.base / "app.yaml").write_text(app(HOLD, num_replicas=2))
    run(["cp", str(kx.base / "app.yaml"), str(kx / "submit/")])
    job = kx.job_of("app.yaml")
    assert job.id in world.jobs()
    waiter = popen(["cat", str(job / "wait")], stdout=open(kx.base / "wait", "wb"))
    for replica in ("main-0", "main-1"):
        running(job, replica)
    assert job.until("RUNNING") == "RUNNING"
    wait_for(lambda: job.status()["phase"] == "Running", what="the controller's word")
    status = yaml.safe_load(job.read("status"))
    assert status["phase"] == "Running" and status["roles"][0]["running"] == 2
    assert status["roles"][0]["replicas"][0]["node"] == world.pods(job.id)[0]["spec"]["nodeName"]
    assert waiter.poll() is None
    world.release_all(job.id)
    ended(job)
    assert waiter.wait(timeout=60) == 0 and (kx.base / "wait").read_text() == "SUCCEEDED\n"
    for name in ("main-0", "main-1"):
        replica = job.replica(name)
        assert (replica["state"], replica["exit_code"], replica["attempt"]) == ("SUCCEEDED", 0, 0)
        assert job.read(name, "state") == "SUCCEEDED\n"
    status = job.status()
    assert status["created"] <= status["started"] <= status["finished"]
    assert job.read("why") == "" and job.read("app.yaml") == (kx.base / "app.yaml").read_text()
    assert yaml.safe_load(job.read("manifest.yaml"))["metadata"]["uid"] == \
        world.jobs()[job.id]["metadata"]["uid"]
    wait_for(lambda: "\tSUCCEEDED" in (kx.base / "changes").read_text(), what="the change to be told")
    watcher.kill()
    watcher.wait()
    told = states((kx.base / "changes").read_text().splitlines(), job.id)
    assert told[0] == "PENDING" and told[-2:] == ["RUNNING", "SUCCEEDED"] and set(told[:-1]) == {"PENDING", "RUNNING"}


def test_failure(kx, world):
    """status and `why` show the replica that failed, its exit code and its meaning."""
    job = kx.submit(app(HOLD, num_replicas=2))
    first, second = running(job, "main-0"), running(job, "main-1")
    world.release(second, 3)
    wait_for(lambda: job.replica("main-1")["state"] == "FAILED", what="main-1 to fail")
    assert job.replica("main-1")["exit_code"] == 3 and job.replica("main-1")["reason"] == "Error"
    world.release(first, 0)
    ended(job, "FAILED")
    assert job.replica("main-0")["state"] == "SUCCEEDED"
    assert job.replica("main-1")["exit_code"] == 3, "it is known after Volcano has dropped its counts"
    assert "main-1 ended with exit code 3" in job.read("why")


@pytest.mark.parametrize("code, runs, state", [(0, 2, "SUCCEEDED"), (7, 2, "FAILED")])
def test_retry_application(kx, world, code, runs, state):
    """A failed replica makes Volcano restart the whole job, with the same pod names."""
    job = kx.submit(app(HOLD, num_replicas=2, max_retries=1, retry_policy="APPLICATION"))
    running(job, "main-1")
    before = {pod["metadata"]["uid"] for pod in world.pods(job.id)}
    world.release(running(job, "main-0"), 7)
    wait_for(lambda: job.status()["retries"] == 1, what="the job to be tried again")

    def again():
        uids = {pod["metadata"]["uid"] for pod in world.pods(job.id)}
        return len(uids) == 2 and not uids & before

    wait_for(again, what="new pods")
    wait_for(lambda: all(job.replica(f"main-{k}")["attempt"] == runs - 1 for k in (0, 1)),
             what="the second attempt")
    running(job, "main-0"), running(job, "main-1")
    world.release_all(job.id, code)
    ended(job, state)
    assert job.replica("main-0")["exit_code"] == code
    assert (job.status()["retries"], job.status()["max_retries"]) == (1, 1)
    assert job.replica("main-0")["attempt"] == runs - 1


def test_retry_replica(kx, world):
    """Volcano restarts only the failed replica, and deletes the pod whose end ends the job."""
    job = kx.submit(app(HOLD, num_replicas=2, max_retries=1, retry_policy="REPLICA"))
    running(job, "main-1")
    other = running(job, "main-0")
    world.release(running(job, "main-1"), 5)
    wait_for(lambda: job.replica("main-1")["attempt"] == 1, what="the second attempt of main-1")
    running(job, "main-1")
    assert running(job, "main-0") == other and job.replica()["attempt"] == 0
    world.release(running(job, "main-1"), 6)
    ended(job, "FAILED")
    assert (job.status()["retries"], job.status()["max_retries"]) == (1, 1)
    assert job.replica("main-1")["exit_code"] == 6 and job.replica("main-1")["attempt"] == 1


def test_retry_role(kx, world):
    err, text = refused(kx, app(HOLD, max_retries=1, retry_policy="ROLE"))
    assert err == "EINVAL" and "roles[0].retry_policy" in text and not world.jobs()


def test_elastic(kx, world):
    """With min_replicas, a job runs once that many replicas do. The others start when there is
    capacity."""
    nodes = [node for node in world.cluster.client.items(api.path_of("nodes"))
             if not node["spec"].get("unschedulable")]
    most = max(cpus(node) for node in nodes)
    n = len(nodes) + 1  # one more than there is capacity for
    job = kx.submit(app(HOLD, num_replicas=n, min_replicas=1,
                        resource={"cpu": round(most * 0.6, 1), "memMB": 64, "gpu": 0}))
    job.until("RUNNING")
    wait_for(lambda: job.status()["roles"][0]["running"] >= 1, what="a replica to run")
    role_status = job.status()["roles"][0]
    assert (role_status["desired"], role_status["minimum"]) == (n, 1)
    assert role_status["running"] < n
    ran = set()

    def all_over():
        for k in range(n):
            replica = job.replica(f"main-{k}")
            if replica["state"] == "RUNNING" and k not in ran:
                ran.add(k)
                world.release(replica["pod"])
        return job.state() == "SUCCEEDED"

    wait_for(all_over, what="the job to succeed")
    assert ran == set(range(n)) and job.status()["roles"][0]["minimum"] == 1


def cpus(node):
    text = node["status"]["allocatable"]["cpu"]
    return int(text[:-1]) / 1000 if text.endswith("m") else int(text)


def test_unschedulable(kx, world):
    """No node fits. The job waits, `why` explains that, and it can be cancelled."""
    job = kx.submit(app(HOLD, resource={"cpu": 0.1, "memMB": 64, "gpu": 0, "capabilities": {
        "node.kubernetes.io/instance-type": "no-such-type"}}))
    wait_for(lambda: job.replica()["reason"] == "Unschedulable", what="the reason")
    assert job.state() == "PENDING" and "node" in job.read("why")
    job.cancel()
    assert job.id not in kx.ls("jobs") and job.id not in world.jobs()


def test_too_large(kx, world):
    """A job that requests more than the whole cluster has."""
    job = kx.submit(app(HOLD, resource={"cpu": 5000, "memMB": 64, "gpu": 0}))
    wait_for(lambda: world.jobs()[job.id].get("status", {}).get("state", {}).get("phase") == "Pending",
             what="the controller")
    wait_for(lambda: job.status()["phase"] == "Pending", what="its phase")
    assert job.state() == "PENDING" and job.status()["roles"][0]["running"] == 0
    run(["rmdir", str(job.dir)])
    assert job.id not in world.jobs()


def test_missing_image(kx, world):
    job = kx.submit(app(HOLD, image="localhost:1/no/such:image"))
    wait_for(lambda: job.replica()["reason"] in ("ImagePullBackOff", "ErrImagePull"),
             what="the reason")
    assert job.state() == "PENDING"
    assert "localhost:1/no/such:image" in job.read("why")


def test_missing_program(kx):
    job = kx.submit(app(roles=[role("", entrypoint="/no/such/program", args=[])]))
    ended(job, "FAILED")
    assert job.replica()["reason"] == "StartError" and "/no/such/program" in job.read("why")


def test_two_roles(kx, world):
    job = kx.submit(app(roles=[role(HOLD, "leader"), role(HOLD, "worker", num_replicas=2)]))
    assert [name for name in kx.ls("jobs", job.id) if "-" in name] == ["leader-0", "worker-0", "worker-1"]
    for name in ("leader-0", "worker-0", "worker-1"):
        world.release(running(job, name))
    job.finish()
    assert [(r["name"], r["desired"]) for r in job.status()["roles"]] == [("leader", 1), ("worker", 2)]


# --- jobs that others made ---------------------------------------------------------------------

BY_HAND = {
    "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "by-hand"},
    "spec": {
        "schedulerName": "volcano", "queue": "default", "minAvailable": 3,
        "tasks": [
            {"name": "prep", "replicas": 1, "template": {"spec": {
                "restartPolicy": "Never",
                "initContainers": [{"name": "fetch", "image": IMAGE, "command": ["sh", "-c", "echo fetched"]}],
                "containers": [
                    {"name": "main", "image": IMAGE, "command": ["sh", "-c", HOLD]},
                    {"name": "side", "image": IMAGE, "command": ["sh", "-c", "echo aside"]}]}}},
            {"name": "work", "replicas": 2, "template": {"spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "only", "image": IMAGE, "command": ["sh", "-c", HOLD]}]}}}],
    },
}


def test_made_with_kubectl(kx, world):
    """A job with several replicas per task, several containers, init containers, and no labels of
    TorchX."""
    world.kubectl("create", "-f", "-", input=json.dumps(BY_HAND))
    wait_for(lambda: "by-hand" in kx.ls("jobs"), what="the job")
    job = kx.jobs()[0]
    assert [name for name in kx.ls("jobs", job.id) if "-" in name] == ["prep-0", "work-0", "work-1"]
    assert "app.yaml" not in kx.ls("jobs", job.id) and job.status()["submitter"] == ""
    for name in ("prep-0", "work-0", "work-1"):
        running(job, name)
    job.until("RUNNING")
    wait_for(lambda: {"log", "fetch.log", "side.log"} <= set(kx.ls("jobs", job.id, "prep-0")), what="its logs")
    assert {name for name in kx.ls("jobs", job.id, "work-1") if name.endswith("log")} == {"log"}
    world.release(job.replica("prep-0")["pod"], container="main")
    for name in ("work-0", "work-1"):
        world.release(job.replica(name)["pod"])
    job.finish()
    assert err_of(os.rmdir, job.dir) == "EPERM", "it is not ours"
    assert job.id in world.jobs() and job.state() == "SUCCEEDED"


def test_deleted_by_others(kx, world):
    """A deleted job disappears from jobs/, and readers of its `wait` are notified."""
    job = kx.submit(app(HOLD))
    running(job)
    with open(job / "wait", "rb") as file:  # opened before the job disappears
        waiter = popen(["cat"], stdin=file, stdout=open(kx.base / "wait", "wb"))
    world.kubectl("delete", "jobs.batch.volcano.sh", job.id)
    wait_for(lambda: job.id not in kx.ls("jobs"), what="the job to go")
    assert waiter.wait(timeout=60) == 0 and (kx.base / "wait").read_text() == "CANCELLED\n"


def test_resubmitted(kx, world):
    """The manifest of a job, submitted unchanged, runs the job again with another name."""
    job = kx.submit(app(HOLD, name="trainer"))
    world.release(running(job))
    job.finish()
    run(["cp", str(job / "manifest.yaml"), str(kx / "submit/again.yaml")])
    again = kx.job_of("again.yaml")
    assert again.id != job.id and again.id.startswith("trainer-")
    world.release(running(again))
    again.finish()
    assert sorted(world.jobs()) == sorted([job.id, again.id])


# --- ctl --------------------------------------------------------------------------------------
# jobs/ID/ctl on a real cluster: kxfs accepts what the controller obeys, and refuses what it would
# ignore.

WORDS = ("suspend", "resume", "restart", "terminate")
BUSY = ["suspend", "restart", "terminate"]


def ctl_refused(job, *but):
    """Assert that every word except these is refused, and changes nothing."""
    before = job.status()
    for word in WORDS:
        if word not in but:
            assert err_of(write_ctl, job, word) == "EINVAL", word
    after = job.status()
    assert (after["phase"], after["retries"]) == (before["phase"], before["retries"])


def done(job, so):
    """Assert that a command has taken effect when the write returns, or is pending and takes effect
    later."""
    status = job.status()
    assert so(status) or status["pending_command"]
    wait_for(lambda: so(job.status()) and not job.status()["pending_command"], what="the command to be obeyed")


def test_suspend_and_resume(mount, world, limited):
    """The rights of contrib/rbac.yaml are enough. The output remains, as that of the first attempt."""
    kx = mount(kubeconfig=limited)
    job = kx.submit(app(HOLD))
    begun(job)
    phase(job, "Running")
    assert actions(job) == BUSY
    ctl_refused(job, *BUSY)
    run(f"echo suspend > {job.dir}/ctl")
    done(job, lambda status: status["phase"] in ("Aborting", "Aborted"))
    phase(job, "Aborted")
    assert job.state() == "CANCELLED" and actions(job) == ["resume"]
    assert job.read("wait") == "CANCELLED\n" and "resume" in job.read("why")
    ctl_refused(job, "resume")
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
    ctl_refused(job)


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
    # Volcano's default is 3. It compares before it restarts a job.
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
    ctl_refused(job)
    wait_for(lambda: not world.pods(job.id), what="its pods to be gone")
    assert job.id in kx.ls("jobs") and job.log().startswith(b"begin\n")


def test_failed(kx, world):
    """Volcano replies 201 to all of these, and does nothing."""
    job = kx.submit(app(HOLD))
    world.release(running(job), 3)
    job.finish("FAILED")
    phase(job, "Failed")
    ctl_refused(job)


def test_while_it_waits(kx, world):
    """A job without capacity can be suspended, and resumed to wait again."""
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
    """Volcano would obey a Command with the uid of another job."""
    job = kx.submit(app(HOLD))
    begun(job)
    fd = os.open(job / "ctl", os.O_WRONLY)
    try:
        world.kubectl("delete", "jobs.batch.volcano.sh", job.id)
        wait_for(lambda: job.id not in kx.ls("jobs"), what="the job to go")
        assert err_of(os.write, fd, b"terminate") in ("ENOENT", "ESTALE")
    finally:
        os.close(fd)


# --- mine -------------------------------------------------------------------------------------
# The option `mine` on a real API server: two users of one namespace each see their own jobs.

USER = "kxfs/user"


def labelled(world, resource, user):
    """Return the names of the objects of a resource with USER's label, as the server selects them."""
    found = world.kubectl("get", resource, "-l", f"{USER}={user}", "-o", "name").stdout.split()
    return {name.partition("/")[2] for name in found}


def test_two_users(mount, cluster, world, top):
    config = pathlib.Path(top) / "mine-config"
    config.write_text(pathlib.Path(cluster.kubeconfig("token")).read_text())
    config.chmod(0o644)
    everything = mount()
    mounts = {user: mount(kubeconfig=config, options="queue=default,mine", user=None if user == "root" else user)
              for user in ("root", harness.USER)}
    shown = {}
    for user, kx in mounts.items():
        kx.call(f"cat > submit/app.yaml <<'END'\n{app(HOLD)}\nEND")
        (shown[user],) = kx.call("ls jobs").stdout.split()  # immediately
    assert shown["root"] != shown[harness.USER]
    for user, kx in mounts.items():
        name = shown[user]
        harness.wait_for(lambda n=name: n in everything.ls("jobs"), what="the job in the mount of all")
        pod = running(harness.Job(everything, name))
        assert labelled(world, "jobs.batch.volcano.sh", user) == {name}
        assert labelled(world, "pods", user) == {pod}
        (group,) = labelled(world, "podgroups.scheduling.volcano.sh", user)
        assert group.startswith(name)

        def has_log(kx=kx, name=name):
            return "begin" in kx.call(f"cat jobs/{name}/main-0/log 2>&1", check=False).stdout

        harness.wait_for(has_log, what=f"the output of {name}")
        world.release(pod)
        assert kx.call(f"cat jobs/{name}/wait").stdout == "SUCCEEDED\n"
        assert kx.call("ls jobs").stdout.split() == [name]
        kx.restart()
        assert kx.call("ls jobs").stdout.split() == [name]
    harness.wait_for(lambda: set(everything.ls("jobs")) == set(shown.values()), what="the jobs of both")
