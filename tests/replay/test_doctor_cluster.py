# SPDX-License-Identifier: MIT
"""kxfs doctor: its report on a cluster, and whether a mount would work."""

import contextlib
import email.utils
import os
import pwd
import threading
import time

import kubeconfig
import pytest
import store as st
import yaml
from disk import Disk
from harness import ROOT, run, wait_for


@pytest.fixture
def doctor(make_kx, server, tmp_path):
    """doctor(config, source, *options) -> (exit status, report without this machine's part)."""

    def ask(config=None, source="volcano:test", *options):
        kx = make_kx(start=False)
        path = kubeconfig.write(tmp_path / "config", config or kubeconfig.config(server))
        p = run([kx.binary, "doctor", *options, *([source] if source else [])], check=False,
                env={**kx.env(), "KUBECONFIG": str(path)})
        assert p.stderr == "" and "test-token" not in p.stdout
        return p.returncode, p.stdout[p.stdout.index("The cluster\n"):]

    return ask


def test_all_is_well(doctor, server):
    server.install(st.OLD_METRICS)
    status, said = doctor()
    assert status == 0
    assert said == f"""The cluster
  ok       context test, namespace test, as its user with a token
  ok       {server.url} answers: Kubernetes v1.36.1
  ok       the clocks of the server and of this machine agree
  ok       jobs of batch.volcano.sh/v1alpha1 are served
  ok       metrics.k8s.io/v1beta1 reports what pods use
  ok       jobs.batch.volcano.sh: get, list, watch
  ok       pods: list, watch
  ok       jobs.batch.volcano.sh: create
  ok       jobs.batch.volcano.sh: delete
  ok       pods/log: get
  ok       commands.bus.volcano.sh: create
  ok       podgroups.scheduling.volcano.sh: list, watch
  ok       events: list, watch
  ok       pods.metrics.k8s.io: list
  ok       queues.scheduling.volcano.sh: list, watch
Mounting will work.
"""
    assert not server.seen(verb="create", resource="jobs") and not server.seen(verb="list")


def test_usage(doctor, server):
    """A mount works without a metrics-server, or the right to read from it."""
    status, said = doctor()
    assert status == 0 and "pods.metrics.k8s.io" not in said
    assert ("  missing  the cluster does not report what pods use (no metrics-server): "
            "usage shows only what was requested\n") in said
    server.install(st.METRICS)
    server.forbidden.append({"group": "metrics.k8s.io"})
    status, said = doctor()
    assert status == 0 and "  ok       metrics.k8s.io/v1 reports what pods use\n" in said
    assert "  missing  pods.metrics.k8s.io: may not list: usage shows only what was requested\n" in said


def test_no_fuse(make_kx, tmp_path, server):
    """Output can be captured even where nothing can be mounted, as in a pod."""
    kx = make_kx(start=False)
    path = kubeconfig.write(tmp_path / "config", kubeconfig.config(server))
    p = run(["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /dev && exec "$@"', "sh", kx.binary, "doctor", "volcano:test"],
            check=False, env={**kx.env(), "KUBECONFIG": str(path), "HOME": str(kx.base)})
    assert p.returncode == 1 and "  wrong    /dev/fuse: " in p.stdout, p.stderr
    assert p.stdout.endswith("\nMounting will not work; kxfs capture, which needs no FUSE, will.\n")


def test_mine(doctor):
    """It names the jobs that the option would show."""
    user = pwd.getpwuid(os.getuid()).pw_name
    status, said = doctor(None, "volcano:test", "-o", "mine")
    assert status == 0
    assert f"  ok       mine: the jobs with the label kxfs/user={user}\n" in said


def test_kueue(doctor, server):
    """Kueue's rights are checked if the cluster has it."""
    server.uninstall(*st.VOLCANO)
    server.install(st.NEW_APPWRAPPERS)
    assert "kueue" not in doctor(source="appwrapper:test")[1]
    server.install(*st.KUEUE)
    server.forbidden += [{"resource": "workloads"}]
    said = doctor(source="appwrapper:test")[1]
    assert "  ok       queues of kueue.x-k8s.io/v1beta2 are served\n" in said
    assert "  missing  workloads.kueue.x-k8s.io: may not list, watch: the file why can't report what a job in a queue" in said
    assert "  ok       localqueues/pendingworkloads.visibility.kueue.x-k8s.io: get\n" in said
    assert "  ok       clusterqueues.kueue.x-k8s.io: list, watch\n" in said


def test_queues_of_kueue(doctor, server):
    """It lists the queues of the namespace, so that users need not guess, and whether the mount's is one of them."""
    source = "jobset:test"

    def said(*options):
        status, text = doctor(None, source, *options)
        assert status == 0
        return [line for line in text.splitlines() if "queues of namespace" in line or "is no queue " in line]

    server.install(st.JOBSETS, *st.KUEUE)
    assert said() == ["  ok       queues of namespace test: none"]
    for name in ("team", "research"):
        server.store.add(st.KUEUE[1], {"metadata": {"name": name, "namespace": "test"}, "spec": {"clusterQueue": "cq"}})
    server.store.add(st.KUEUE[1], {"metadata": {"name": "far", "namespace": "other"}, "spec": {"clusterQueue": "cq"}})
    assert said() == said("-o", "queue=team") == ["  ok       queues of namespace test: research, team"]
    assert said("-o", "queue=taem") == [
        "  ok       queues of namespace test: research, team",
        "  missing  there is no queue taem, which -o queue= names: jobs in it wait until it is created"]
    server.forbidden.append({"resource": "localqueues"})
    assert said("-o", "queue=taem") == []
    server.forbidden.clear()
    source = "test"  # where a file becomes a job of Volcano, the queue is one of Volcano's
    assert said("-o", "queue=taem") == ["  ok       queues of namespace test: research, team"]


def test_a_right_is_missing(doctor, server):
    server.forbidden += [{"resource": "events", "verb": "watch"}, {"resource": "queues"}, {"subresource": "log"}]
    status, said = doctor()
    assert status == 0 and said.endswith("Mounting will work, with the limitations listed above.\n")
    assert "  missing  events: may not watch: there is no events file; " in said
    assert "  missing  queues.scheduling.volcano.sh: may not list, watch: queues/ has at most the queue" in said
    assert "  missing  pods/log: may not get: logs that were not captured can't be opened\n" in said
    assert "  ok       pods: list, watch\n" in said


def test_a_needed_right_is_missing(doctor, server):
    server.forbidden.append({"resource": "pods", "verb": "list", "subresource": ""})
    status, said = doctor()
    assert status == 1 and said.endswith("Mounting will not work.\n")
    assert "  wrong    pods: may not list, which each mount needs: check the namespace, or ask the cluster's " in said


def test_what_is_served_is_found(doctor, server):
    server.uninstall(*st.VOLCANO)
    server.install(st.APPWRAPPERS)
    status, said = doctor(None, "")
    assert status == 0
    assert "  ok       appwrappers of workload.codeflare.dev/v1beta1 are served\n" in said
    assert "  ok       appwrappers.workload.codeflare.dev: get, list, watch\n" in said and "volcano" not in said
    status, said = doctor()
    assert status == 1
    assert said.endswith("  wrong    the cluster serves no Volcano jobs: is it the right "
                         "cluster? Otherwise ask its administrator to install "
                         "them\nMounting will not work.\n")


def test_all_kinds(doctor, server):
    """Each served kind has its lines; a forbidden kind does not prevent a mount, unless it is the last."""
    server.install(st.NEW_APPWRAPPERS, st.JOBSETS, st.BATCH_JOBS)
    status, said = doctor(None, "test")
    assert status == 0 and "are not shown" not in said
    for resource in ("jobs.batch.volcano.sh", "appwrappers.workload.codeflare.dev", "jobsets.jobset.x-k8s.io", "jobs.batch"):
        assert f"  ok       {resource}: get, list, watch\n" in said and f"  ok       {resource}: create\n" in said
    server.forbidden.append({"resource": "jobsets"})
    status, said = doctor(None, "test")
    assert status == 0 and said.endswith("Mounting will work, with the limitations listed above.\n")
    assert "  missing  jobsets.jobset.x-k8s.io: may not get, list, watch: its jobs are not shown\n" in said
    assert doctor(None, "jobset:test")[0] == 1
    server.forbidden += [{"resource": "jobs"}, {"resource": "appwrappers"}]
    status, said = doctor(None, "test")
    assert status == 1 and "\nMounting will not work." in said
    assert "  wrong    no jobs of any kind may be listed: check the namespace, or ask the cluster's " in said


def test_clock(doctor, server):
    server.date = "Wed, 21 Oct 2015 07:28:00 GMT"
    status, said = doctor()
    assert status == 0 and "  missing  the server's clock is " in said and " s behind that of this machine: " in said


def test_clock_of_a_slow_server(doctor, server):
    """The latency of a reply does not count as a difference of the clocks."""
    def answer():
        wait_for(lambda: server.requests, what="a request")
        server.date = email.utils.formatdate(usegmt=True)
        time.sleep(5)
        server.thaw()

    server.freeze()
    thread = threading.Thread(target=answer)
    thread.start()
    said = doctor()[1]
    thread.join()
    assert "  ok       the clocks of the server and of this machine agree\n" in said


def test_no_server(doctor, server):
    server.away()
    status, said = doctor()
    assert status == 1 and "  wrong    get /version" in said and said.endswith("Mounting will not work.\n")


def test_wrong_token(doctor, server):
    status, said = doctor(kubeconfig.config(server, user=kubeconfig.token("old")))
    assert status == 1 and "  wrong    the server rejects the credentials (401)\n" in said


def test_rbac_has_these_rights(doctor, server):
    """contrib/rbac.yaml has exactly the checked rights."""
    asked = set()
    server.install(st.METRICS)
    for resources, source in ((None, "volcano:test"), ((st.APPWRAPPERS,), "mcad:test"),
                              ((st.NEW_APPWRAPPERS, *st.KUEUE), "appwrapper:test"), ((st.JOBSETS,), "jobset:test"),
                              *(((resource, *st.KIND_PARTS[name]), f"{name}:test")
                                for name, resource in st.KIND_FILES.items() if name != "jobset")):
        if resources:
            server.install(*resources)
        assert doctor(None, source)[0] == 0
    for req in server.seen(resource="selfsubjectaccessreviews"):
        right = yaml.safe_load(req.body)["spec"]["resourceAttributes"]
        sub = f"/{right['subresource']}" if "subresource" in right else ""
        asked.add((right["group"], right["resource"] + sub, right["verb"]))
    given = {(group, resource, verb)
             for role in yaml.safe_load_all((ROOT / "contrib/rbac.yaml").read_text()) for rule in role["rules"]
             for group in rule["apiGroups"] for resource in rule["resources"] for verb in rule["verbs"]}
    assert asked == given


def rights_of(text):
    return [{(group, resource, verb) for rule in role["rules"] for group in rule["apiGroups"]
             for resource in rule["resources"] for verb in rule["verbs"]}
            for role in yaml.safe_load_all(text) if role["kind"] in ("Role", "ClusterRole")]


def test_prints_role(binary, tmp_path):
    """Without a cluster: the rights of contrib/rbac.yaml, of a capture, and of the kind of a user's file."""
    def rbac(*words):
        p = run([binary, "doctor", "--rbac", *words])
        assert p.stdout.count("apiGroups") == len({line for line in p.stdout.split("- ")[1:]})
        return rights_of(p.stdout)

    assert rbac() == rights_of((ROOT / "contrib/rbac.yaml").read_text())
    role = rbac("-o", "ro")[0]
    assert role - rights_of((ROOT / "contrib/kubernetes/base/rights.yaml").read_text())[0] == {("kueue.x-k8s.io", "localqueues", "get")}
    assert {verb for _, _, verb in role} == {"get", "list", "watch"}
    kind = (ROOT / "share/kinds/rayjob.yaml").read_text().replace("ray.io/v1", "example.com/v1").replace("name: rayjob", "name: mine")
    (tmp_path / "mine.yaml").write_text(kind)
    role = rbac("-o", f"kinds={tmp_path}", "mine:x")[0]
    assert {("example.com", "rayjobs", "patch"), ("example.com", "rayclusters", "watch"), ("batch", "jobs", "list")} <= role
    assert not any(resource == "jobsets" for _, resource, _ in role)
    assert run([binary, "--rbac", "x", "/mnt"], check=False).stderr == (
        "kxfs: --rbac is an option of doctor: kxfs doctor --rbac [OPTIONS] [SOURCE]\n")


def test_archive(doctor, tmp_path):
    """The archive's writability is tested, without leaving a file there."""
    archive = tmp_path / "archive"
    status, said = doctor(None, "volcano:test", "-o", f"archive={archive}")
    assert status == 0 and said.endswith(f"""
The archive
  missing  archive {archive}: No such file or directory
Mounting will work, with the limitations listed above.
""")
    archive.mkdir()
    status, said = doctor(None, "volcano:test", "-o", f"archive={archive}")
    assert status == 0 and f"\nThe archive\n  ok       archive {archive}: can be written to\n" in said
    assert not list(archive.iterdir())


def test_a_disk_that_hangs(make_kx, server, tmp_path):
    """The token's file can't be read at the moment: doctor reports that, and ends."""
    (tmp_path / "secrets").mkdir()
    kx = make_kx(start=False)
    with contextlib.closing(Disk(kx, tmp_path / "secrets")) as disk:
        (tmp_path / "secrets/token").write_text("test-token")
        path = kubeconfig.write(tmp_path / "config", kubeconfig.config(server, kubeconfig.token_file(tmp_path / "secrets/token")))
        disk.hang("open", "/token")
        with disk.still():
            # LeakSanitizer stops all threads first, and waits for the hanging one.
            p = run([kx.binary, "doctor", "volcano:test"], check=False,
                    env={**kx.env(), "KUBECONFIG": str(path), "LSAN_OPTIONS": "detect_leaks=0"})
    assert p.returncode == 1 and p.stdout.endswith("""
  wrong    get /version: the files with the credentials can't be read in time
Mounting will not work.
"""), p.stderr
