# SPDX-License-Identifier: MIT
"""Jobs of a mount on a real cluster: from submission to end with ordinary tools, jobs that others
made, ctl, and the option `mine`."""

import json
import os
import pathlib

import harness
import yaml
from harness import actions, err_of, popen, run, wait_for, write_ctl
from mounted import HOLD, IMAGE, app, begun, ended, phase, running


def states(lines, ident):
    """Return the states of job IDENT in LINES of `changes`, without repetitions and SUBMITTED."""
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
    """A deleted job moves from jobs/ to history/ with its output. A reader of its `wait` gets
    CANCELLED."""
    job = kx.submit(app(HOLD))
    begun(job)
    with open(job / "wait", "rb") as file:  # opened before the job disappears
        waiter = popen(["cat"], stdin=file, stdout=open(kx.base / "wait", "wb"))
    world.kubectl("delete", "jobs.batch.volcano.sh", job.id)
    wait_for(lambda: job.id not in kx.ls("jobs"), what="the job to go")
    assert waiter.wait(timeout=60) == 0 and (kx.base / "wait").read_text() == "CANCELLED\n"
    wait_for(lambda: job.id in kx.history(), what="the job in the history")
    assert (job.old / "main-0/log").read_text().startswith("begin\n")


# --- ctl --------------------------------------------------------------------------------------


def done(job, so):
    """Assert that a command has taken effect when the write returns, or is pending and takes effect
    later."""
    status = job.status()
    assert so(status) or status["pending_command"]
    wait_for(lambda: so(job.status()) and not job.status()["pending_command"], what="the command to be obeyed")


def test_suspend_and_resume(mount, world, limited):
    """The rights of contrib/rbac.yaml are enough for ctl. The output of a suspended job remains, as
    that of its first attempt."""
    kx = mount(kubeconfig=limited)
    job = kx.submit(app(HOLD))
    begun(job)
    phase(job, "Running")
    assert actions(job) == ["suspend", "restart", "terminate"]
    run(f"echo suspend > {job.dir}/ctl")
    done(job, lambda status: status["phase"] in ("Aborting", "Aborted"))
    phase(job, "Aborted")
    assert job.state() == "CANCELLED" and actions(job) == ["resume"]
    assert job.read("wait") == "CANCELLED\n" and "resume" in job.read("why")
    assert err_of(write_ctl, job, "suspend") == "EINVAL"
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


# --- mine -------------------------------------------------------------------------------------

USER = "kxfs/user"


def labelled(world, resource, user):
    """Return the names of the objects of RESOURCE that have the label of USER."""
    found = world.kubectl("get", resource, "-l", f"{USER}={user}", "-o", "name").stdout.split()
    return {name.partition("/")[2] for name in found}


def test_two_users(mount, cluster, world, top):
    """Two users of one namespace each see only their own jobs, immediately and after a restart of
    kxfs."""
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
