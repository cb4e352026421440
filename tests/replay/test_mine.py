# SPDX-License-Identifier: MIT
"""The option `mine`: kxfs requests only jobs that this user submitted through kxfs, and the pods and groups of these
jobs. No data of other jobs are transferred."""

import json
import pathlib
import pwd

import harness
import kubeconfig
import pytest
import store as st
import watching
from fakes import FakeJobSet, FakeMcad, FakeVolcano
from submitting import job_of

USER = "kxfs/user"
ME = pwd.getpwuid(0).pw_name
GOOD = harness.app("true", num_replicas=2)
MANIFEST = json.dumps({
    "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "taken", "labels": {USER: "bob"}},
    "spec": {"minAvailable": 1, "queue": "default", "tasks": [{"name": "main", "replicas": 1, "template": {
        "metadata": {"labels": {USER: "bob"}}, "spec": {"containers": [{"name": "main", "image": "i"}]}}}]}})


@pytest.fixture
def kx(make_mount, server, volcano):
    del volcano
    return make_mount(server, "mine,capture=all")


def labels(user):
    return {"labels": {USER: user}} if user else {}


def add(server, name, user):
    """Return a running job that USER has submitted from another host. If USER is None, the job has no label."""
    job = server.store.add(st.JOBS, watching.job(name, phase="Running", **labels(user)))
    pod = watching.pod(job, "main", 0, phase="Running")
    pod["metadata"]["labels"].update(labels(user).get("labels", {}))
    server.store.add(st.PODS, pod)
    return job


def selectors(server, resource):
    """Return the label selectors of all lists and watches of RESOURCE. Ignore requests for metadata only and for a
    single object."""
    harness.wait_for(lambda: server.open_streams(verb="watch", resource=resource), what=f"a watch of {resource}")
    asked = server.seen(verb="list", resource=resource, is_metadata=False) + server.seen(verb="watch", resource=resource)
    return {req.query.get("labelSelector") for req in asked if not req.query.get("fieldSelector", "").startswith("metadata.name=")}


def test_only_what_is_mine_is_asked_for(server, make_mount, volcano):
    """kxfs selects jobs by the user and not by the host, so it shows jobs that this user submitted from another
    host."""
    del volcano
    for name, user in (("elsewhere", ME), ("bobs", "bob"), ("old", None), ("similar", f"{ME}2")):
        add(server, name, user)
    kx = make_mount(server, "mine,capture=all")
    assert kx.ls("jobs") == ["elsewhere"]
    assert kx.ls("jobs", "elsewhere", "logs") == ["main-0.log"]
    assert selectors(server, "jobs") == selectors(server, "podgroups") == {f"{USER}={ME}"}
    assert selectors(server, "pods") == {f"volcano.sh/job-name,{USER}={ME}"}
    assert selectors(server, "queues") == selectors(server, "events") == {None}
    # Watches select in the same way.
    add(server, "bobs-next", "bob")
    add(server, "next", ME)
    harness.wait_for(lambda: kx.ls("jobs") == ["elsewhere", "next"], what="the next job")
    assert f"{USER}={ME}" in kx.read(".kxfs", "info")


def test_with_a_selector(server, make_mount):
    """With the option `selector`, a job is shown if both selectors match."""
    add(server, "mine", ME)
    server.store.add(st.JOBS, watching.job("both", labels={USER: ME, "team": "vision"}))
    server.store.add(st.JOBS, watching.job("bobs", labels={USER: "bob", "team": "vision"}))
    kx = make_mount(server, "mine,selector=team in (vision\\,audio)")
    assert kx.ls("jobs") == ["both"]
    assert selectors(server, "jobs") == {f"team in (vision,audio),{USER}={ME}"}


def test_without(server, make_mount):
    """Without the option, all jobs are shown, and pods are requested as usual. Submitted jobs have the label anyway."""
    for name, user in (("hers", ME), ("bobs", "bob"), ("old", None)):
        add(server, name, user)
    kx = make_mount(server)
    assert kx.ls("jobs") == ["bobs", "hers", "old"]
    assert selectors(server, "pods") == {"volcano.sh/job-name"}
    kx.write("submit/app.yaml", GOOD)
    made = server.store.find(st.JOBS, "test", job_of(kx, "app.yaml")).tree()
    assert made["metadata"]["labels"] == {USER: ME}


@pytest.mark.parametrize("source, resource, make", [
    ("volcano", st.JOBS, FakeVolcano), ("mcad", st.APPWRAPPERS, FakeMcad), ("jobset", st.JOBSETS, FakeJobSet)])
def test_submit(server, make_mount, source, resource, make):
    """A submitted job appears immediately, with its pods and their output, and is still shown after a remount."""
    server.uninstall(*st.VOLCANO)
    server.install(*(st.VOLCANO if resource is st.JOBS else (resource,)))
    controller = make(server)
    kx = make_mount(server, "mine", source=f"{source}:test")
    kx.write("submit/app.yaml", GOOD)
    name = job_of(kx, "app.yaml")
    assert kx.ls("jobs") == [name]
    if source == "mcad":
        controller.dispatch(name)
    for pod in controller.start(name):
        controller.log(pod).append("hello\n")
    job = harness.Job(kx, name)
    for replica in ("main-0", "main-1"):
        job.until_logged("hello\n", replica)
    assert selectors(server, resource.plural) == {f"{USER}={ME}"}
    (asked,) = selectors(server, "pods")
    assert asked.split(",")[-1] == f"{USER}={ME}"
    kx.restart()
    assert kx.ls("jobs") == [name] and kx.history() == []


def test_name_of_a_job_that_is_not_shown(server, kx):
    """kxfs replaces another user's name in a submitted manifest: the job belongs to the user who submits it."""
    add(server, "taken", "bob")
    kx.write("submit/again.yaml", MANIFEST)
    name = job_of(kx, "again.yaml")
    assert name.startswith("taken-") and kx.ls("jobs") == [name]
    tree = server.store.find(st.JOBS, "test", name).tree()
    assert tree["metadata"]["labels"] == tree["spec"]["tasks"][0]["template"]["metadata"]["labels"] == {USER: ME}


def test_two_users(server, make_mount, volcano, top):
    """Each user sees only their own jobs, in each of their mounts."""
    del volcano
    config = kubeconfig.write(pathlib.Path(top) / "config", kubeconfig.config(server))
    config.chmod(0o644)
    mounts = {user: make_mount(server, "mine", user=user, env={"KUBECONFIG": str(config)})
              for user in (None, harness.USER)}
    for user, kx in mounts.items():
        kx.call(f"cat > submit/app.yaml <<'END'\n{GOOD}\nEND")
        kx.shown = kx.call("ls jobs").stdout.split()
        assert len(kx.shown) == 1
        (obj,) = [job for job in server.store.objects(st.JOBS)[0] if job.name in kx.shown]
        assert obj.labels == {USER: user or ME}
    assert mounts[None].shown != mounts[harness.USER].shown
    other = make_mount(server, "mine")
    assert other.ls("jobs") == mounts[None].ls("jobs") == mounts[None].shown


def test_cancel_mine(server, make_mount, volcano):
    """With cancel=mine, users can remove jobs that they have submitted from another host or state directory. They
    can't remove jobs of other users, or jobs without the label."""
    del volcano
    for name, user in (("elsewhere", ME), ("bobs", "bob"), ("nobodys", None), ("similar", f"{ME}2")):
        add(server, name, user)
    own, mine = make_mount(server), make_mount(server, "cancel=mine")
    for kx, names in ((own, ("elsewhere", "bobs")), (mine, ("bobs", "nobodys", "similar"))):
        for name in names:
            p = harness.run(["rm", "-r", str(kx / f"jobs/{name}")], check=False)
            assert p.returncode == 1 and "not permitted" in p.stderr
    assert "to cancel such jobs, mount with -o cancel=mine" in own.read(".kxfs/log")
    assert "bobs: refused: the job was not submitted by this user; to cancel such jobs, mount with -o cancel=all" in mine.read(".kxfs/log")
    assert not server.seen(verb="delete")
    harness.remove(mine / "jobs/elsewhere")
    (asked,) = server.seen(verb="delete")
    assert asked.name == "elsewhere"
    harness.wait_for(lambda: "elsewhere" not in own.ls("jobs"))
