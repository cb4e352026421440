# SPDX-License-Identifier: MIT
"""A mount with the rights of contrib/rbac.yaml, and with all of these except one: it works, and
reports what is refused and the consequences."""

import os

import pytest
import yaml
from harness import err_of, run, wait_for, write_ctl
from mounted import HOLD, app, manifest, quota, refused, running, says

JOBS = "jobs.batch.volcano.sh"
PODGROUPS, QUEUES = "podgroups.scheduling.volcano.sh", "queues.scheduling.volcano.sh"
COST = {
    PODGROUPS: "the file \"why\" can't report why the scheduler does not admit a job or start its gang",
    "events": "there is no events file; the file \"why\" can't report pods that can't be "
              "created, volumes that can't be mounted, or full queues",
}
# `why` of a job of two pods with quota for one pod, without these rights, while it waits.
SHORT = {
    PODGROUPS: "The job waits: its pods can't be created: quota few is exhausted (requested: "
               "pods=1, used: pods=1, limited: pods=1). The job continues automatically if quota "
               "becomes available soon; Volcano gives up after some minutes.",
    "events": "The job waits: 2 pods must start together, but only 1 exists. "
              "This user may not list and watch events, which would "
              "show the reason: ask the cluster's administrator for that right.",
}
NO_QUEUES = [(QUEUES, "there is no queues/ directory; the file \"why\" can't report the capacity of a queue")]
OWN_QUEUE = [(QUEUES, "queues/ shows only the queue of -o queue=NAME")]


class Rights:
    """The rights of the user of the kubeconfig `limited`. `user` is the user's name."""

    def __init__(self, world):
        self.world = world
        self.user = f"system:serviceaccount:{world.namespace}:kxfs"
        self.rules = yaml.safe_load(world.kubectl("get", "role", "kxfs", "-o", "yaml").stdout)["rules"]

    def may(self, verb, resource):
        resource, _, sub = resource.partition("/")
        return self.world.kubectl("auth", "can-i", verb, resource, f"--subresource={sub}", "--as", self.user,
                                  check=False).stdout.strip() == "yes"

    def without(self, resource, *verbs):
        """Remove VERBS of RESOURCE, or all of them if none are given."""
        name = resource.partition(".")[0]
        rules, gone = [], []
        for rule in self.rules:
            kept = rule
            if name in rule["resources"]:
                gone = list(verbs or rule["verbs"])
                kept = {**rule, "verbs": [verb for verb in rule["verbs"] if verb not in gone]}
            rules += [kept] if kept["verbs"] else []
        self.world.cluster.apply({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
                                  "metadata": {"name": "kxfs"}, "rules": rules},
                                 namespace=self.world.namespace)
        self.rules = rules
        assert gone, resource
        for verb in gone:
            wait_for(lambda v=verb: not self.may(v, resource), what="the right to be gone")

    def see_queues(self, **narrower):
        """Bind the ClusterRole of contrib/rbac.yaml to the user. With resourceNames, bind a
        narrower one."""
        name = f"kxfs-queues-{self.world.namespace}"
        kind = {"apiVersion": "rbac.authorization.k8s.io/v1"}
        self.world.cluster.apply(
            {**kind, "kind": "ClusterRole", "metadata": {"name": name}, "rules": [{
                "apiGroups": ["scheduling.volcano.sh"], "resources": ["queues"], "verbs": ["list", "watch"],
                **narrower}]},
            {**kind, "kind": "ClusterRoleBinding", "metadata": {"name": name},
             "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
             "subjects": [{"kind": "ServiceAccount", "name": "kxfs", "namespace": self.world.namespace}]})
        what = f"{QUEUES}/{narrower['resourceNames'][0]}" if narrower else QUEUES
        wait_for(lambda: self.world.kubectl("auth", "can-i", "list", what, "--as", self.user,
                                            check=False).stdout.strip() == "yes", what="the right")


@pytest.fixture
def rights(world, limited):
    rights = Rights(world)
    yield rights
    for kind in ("clusterrolebinding", "clusterrole"):
        world.kubectl("delete", kind, f"kxfs-queues-{world.namespace}", "--ignore-not-found")


def refusals(kx):
    return yaml.safe_load(kx.read(".kxfs", "info"))["refused"]


def told(kx):
    """Return what .kxfs/info reports as refused: (resource, consequence)."""
    return [(one["resource"], one["cost"]) for one in refusals(kx)]


def works(kx, world):
    """Assert that everything works that needs no optional right."""
    job = kx.submit(app(HOLD))
    pod = running(job)
    job.until_logged("begin")
    world.release(pod)
    job.finish()
    assert job.read("main-0", "follow") == "begin\nend\n" and job.read("why") == ""
    run(["rm", "-r", str(job.dir)])
    assert not world.jobs() and "connected: true" in kx.read(".kxfs", "info")


def test_all(mount, world, limited, rights):
    """All rights except those for queues, which a namespace's Role can't grant."""
    kx = mount(kubeconfig=limited)
    works(kx, world)
    wait_for(lambda: told(kx) == NO_QUEUES, what="what is refused")
    assert not (kx / "queues").exists()
    assert refusals(kx)[0]["answer"] == (f"forbidden: user {rights.user} has no cluster-wide right to "
                                         f"list {QUEUES}\nAsk the cluster's administrator "
                                         f"for this right.")


def test_all_queues(mount, world, limited, rights):
    rights.see_queues()
    kx = mount(kubeconfig=limited)
    wait_for(lambda: (kx / "queues").exists() and "default" in kx.ls("queues"), what="the queues")
    works(kx, world)
    assert told(kx) == []


def test_own_queue(mount, limited, rights):
    """A right to read only one queue: resourceNames: [default]."""
    rights.see_queues(resourceNames=["default"])
    kx = mount(kubeconfig=limited)
    wait_for(lambda: (kx / "queues").exists() and kx.ls("queues") == ["default"], what="the queue")
    assert told(kx) == OWN_QUEUE


@pytest.mark.parametrize("resource", [PODGROUPS, "events"])
def test_without(mount, world, limited, rights, resource):
    """All rights except those for one resource."""
    rights.without(resource)
    kx = mount(kubeconfig=limited)
    works(kx, world)
    wait_for(lambda: told(kx) == [(resource, COST[resource]), *NO_QUEUES], what="what is refused")
    assert refusals(kx)[0]["answer"].startswith(forbidden(rights, "list", resource) + "\n")
    quota(world, "pods")
    # A real scheduler starts no pod of an incomplete gang. The simulated one would, so an
    # unmountable volume prevents that.
    job = kx.submit(manifest(replicas=2, volumes=[{"name": "none", "secret": {"secretName": "none"}}],
                             container={"volumeMounts": [{"name": "none", "mountPath": "/none"}]}))
    says(job, SHORT[resource])
    assert ("events" in kx.ls("jobs", job.id)) == (resource != "events")


# --- rights that are needed only on request ----------------------------------------------------


def forbidden(rights, verb, resource):
    return (f"forbidden: user {rights.user} may not {verb} {resource} in namespace {rights.world.namespace}, or "
            "this namespace does not exist")


def test_no_create(mount, world, limited, rights):
    """The file remains, and the reason is beside it."""
    rights.without(JOBS, "create")
    kx = mount(kubeconfig=limited)
    err, text = refused(kx, app(HOLD))
    assert err == "EACCES" and forbidden(rights, "create", JOBS) in text
    assert kx.read("submit/app.yaml") == app(HOLD) and not world.jobs()


def test_without_others(mount, world, limited, rights):
    """Without the rights for rmdir, ctl and logs, each of these fails with the missing right. The
    job continues."""
    rights.without(JOBS, "delete")
    rights.without("commands.bus.volcano.sh", "create")
    rights.without("pods/log", "get")
    kx = mount(kubeconfig=limited)
    job = kx.submit(app(HOLD))
    running(job)
    assert err_of(os.rmdir, job.dir) == "EACCES"
    assert f"{job.id}: rmdir failed: {forbidden(rights, 'delete', JOBS)}" in kx.read(".kxfs", "log")
    assert err_of(write_ctl, job, "suspend") == "EACCES"
    assert forbidden(rights, "create", "commands.bus.volcano.sh") in kx.read(".kxfs", "log")
    rights.without(JOBS, "get")
    assert err_of(write_ctl, job, "suspend") == "EACCES"
    assert forbidden(rights, "get", JOBS) in kx.read(".kxfs", "log")
    job.until("RUNNING")
    assert job.status()["pending_command"] is None
    world.release_all(job.id)
    job.finish()
    assert err_of(job.log) == "EACCES"
    wait_for(lambda: forbidden(rights, "get", "pods/log") in kx.read(".kxfs", "log"), what="why there is no output")


@pytest.mark.parametrize("resource", [JOBS, "pods"])
def test_nothing_without(mount, limited, rights, resource):
    """Jobs and their pods must be readable. Otherwise nothing is mounted."""
    rights.without(resource, "list")
    kx = mount(kubeconfig=limited, start=False)
    p = run(kx.command(), env=kx.env(), check=False)
    assert p.returncode == 1 and forbidden(rights, "list", resource) in p.stderr
    assert not os.listdir(kx.mnt)


def test_read_only(mount, world, limited, rights):
    """-o ro does not need the rights to create, delete, or send commands."""
    rights.without(JOBS, "create", "delete", "get")
    rights.without("commands.bus.volcano.sh")
    world.kubectl("create", "-f", "-", input=manifest())
    kx = mount(kubeconfig=limited, options="ro")
    wait_for(lambda: kx.ls("jobs"), what="the job")
    job = kx.jobs()[0]
    world.release(running(job))
    job.finish()
    assert job.log() == b"begin\nend\n" and told(kx) == OWN_QUEUE
