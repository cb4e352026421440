# SPDX-License-Identifier: MIT
"""Texts from outside that would affect a terminal, or break a format: shown, and harmless."""

import json

import harness
import kubeconfig
import pytest
import replies
import store as st
import yaml
from mcad import FakeMcad
from submitting import error_of

EVIL = "bad\x1b[31m\x07\x7f\u009b2J\r\nnext\tline"
APP = harness.app("true")


def shown(kx, *parts):
    """Return a file's contents, which must be harmless."""
    data = (kx / "/".join(parts)).read_bytes()
    harmless(data)
    return data.decode()


def harmless(data):
    text = data.decode()  # it is UTF-8
    assert not [c for c in text if (c < " " and c not in "\n\t") or "\x7f" <= c <= "\x9f"], data


def all_of(kx, job):
    for name in ("state", "why", "manifest.yaml", "main-0/state", "main-0/status"):
        shown(kx, "jobs", job, name)
    status = yaml.safe_load(shown(kx, "jobs", job, "status"))
    assert json.loads(shown(kx, "jobs", job, "status.json"))["roles"] == status["roles"]
    for name in ("info", "log", "metrics"):
        shown(kx, ".kxfs", name)
    return status


def test_objects(kx, server, volcano):
    job = kx.submit(APP)
    (pod,) = volcano.pods(job.id)
    changes = harness.popen(["cat", str(kx / "changes")], stdout=-1)
    volcano.wait_reason(pod, "Evil" + EVIL, EVIL)
    volcano.set_phase(job.id, "Pending" + EVIL)
    harness.wait_for(lambda: "Evil" in kx.read("jobs", job.id, "status") and job.status()["phase"].startswith("Pendingbad"))
    status = all_of(kx, job.id)
    assert status["roles"][0]["replicas"][0]["message"].startswith("bad\x1b[31m\x07")
    # Not even UTF-8: a server would not send that, but a proxy might.
    tree = server.store.find(st.PODS, "test", pod).tree()
    tree["metadata"]["resourceVersion"] = str(server.store.version + 1)
    state = {"waiting": {"reason": "Invalid@@", "message": "m@@"}}
    tree["status"]["containerStatuses"][0]["state"] = state
    event = json.dumps({"type": "MODIFIED", "object": tree}).encode().replace(b"@@", b"\xff\xe2\x82\x9b")
    server.inject(event + b"\n", verb="watch", resource="pods")
    harness.wait_for(lambda: b"Invalid" in (kx / f"jobs/{job.id}/status").read_bytes())
    all_of(kx, job.id)
    job.cancel()
    harness.kill(changes.pid)
    harmless(changes.communicate()[0])


def test_refusals(kx, server):
    body = json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 400,
                       "reason": "BadRequest", "message": "@@" + EVIL}).encode()
    server.faults.add("reply", reply=replies.Reply(400, body.replace(b"@@", b"\xff\x9b")), verb="create")
    assert harness.err_of(kx.write, "submit/app.yaml", APP) == "EINVAL"
    assert "next line" in error_of(kx, "app.yaml")
    shown(kx, "submit", "app.yaml.error")
    # A reply that is not the API server's own proves nothing about the job: kxfs retries.
    server.faults.add("reply", reply=replies.Reply(400, b"\xff\x9b" + EVIL.encode()), verb="create")
    kx.write("submit/app.yaml", APP)
    assert "next line" in shown(kx, ".kxfs", "log")


def test_plugin(make_mount, server, tmp_path):
    """A plugin that works once and then fails, with colours."""
    script = tmp_path / "plugin"
    script.write_text(f"""#!/bin/sh
if mkdir {tmp_path}/once; then
    cat <<-END
	{{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": {{"token": "test-token"}}}}
	END
else
    printf 'log in: \\033[31m\\377\\2332J\\n' >&2
    exit 1
fi
""")
    script.chmod(0o755)
    kx = make_mount(server, config=kubeconfig.config(server, user=kubeconfig.plugin(str(script))))
    server.tokens.clear()
    assert harness.err_of(kx.write, "submit/app.yaml", APP) == "EACCES"
    assert "log in: " in error_of(kx, "app.yaml")
    shown(kx, "submit", "app.yaml.error")
    shown(kx, ".kxfs", "log")
    shown(kx, ".kxfs", "info")


def deep_wrapper(depth):
    """An AppWrapper that wraps an object nested DEPTH deep, which no API server checks."""
    deep = json.loads('{"a":' * depth + "1" + "}" * depth)
    return {"metadata": {"name": "deep", "namespace": "test"}, "spec": {"resources": {"GenericItems": [
        {"generictemplate": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": deep}}]}}}


def info(kx):
    return yaml.safe_load(kx.read(".kxfs", "info"))


def passed_over(kx):
    return info(kx)["passed_over"]


@pytest.mark.parametrize("when", ["before", "while"])
def test_deep_object(make_mount, server, when):
    """An object that any user may write does not stop a mount: it is skipped, named, and counted until it is
    deleted."""
    server.uninstall(*st.VOLCANO)
    server.install(st.APPWRAPPERS)
    mcad = FakeMcad(server)
    if when == "before":
        server.store.add(st.APPWRAPPERS, deep_wrapper(300))
    kx = make_mount(server, source="mcad:test")
    if when == "while":
        server.store.add(st.APPWRAPPERS, deep_wrapper(300))
    harness.wait_for(lambda: passed_over(kx) == 1)
    assert info(kx)["connected"] is True
    job = kx.submit(APP)
    mcad.dispatch(job.id)
    mcad.start(job.id)
    job.until("RUNNING")
    assert kx.ls("jobs") == [job.id]
    assert kx.read(".kxfs", "log").count("the AppWrapper deep is not shown: it is nested too deep") == 1
    server.store.remove(st.APPWRAPPERS, "test", "deep")
    harness.wait_for(lambda: passed_over(kx) == 0)


def test_large_object(make_mount, server, volcano, monkeypatch):
    """A megabyte of "<", which Go expands to more than six."""
    real = st.encode
    monkeypatch.setattr(st, "encode", lambda resource, obj: real(resource, obj).replace(b"<", b"\\u003c"))
    server.store.add(st.PODS, {
        "metadata": {"name": "large", "namespace": "test", "labels": {"volcano.sh/job-name": "x"}, "ownerReferences": [
            {"apiVersion": "no.such/v1", "kind": "X", "name": "y", "uid": "<" * 1_420_000}]},
        "spec": {"containers": [{"name": "main"}]}, "status": {"phase": "Pending"}})
    kx = make_mount(server)
    job = kx.submit(APP)
    volcano.start(job.id)
    job.until("RUNNING")
    assert passed_over(kx) == 1
    assert "the Pod large is not shown: it is too large" in kx.read(".kxfs", "log")
