# SPDX-License-Identifier: MIT
"""Every connection to a cluster that a kubeconfig can describe. Each is tested with a real mount."""

import contextlib
import os
import pathlib
import resource
import subprocess
import textwrap

import harness
import kubeconfig
import pytest
import store as st
import watching
from apiserver import ApiServer
from disk import Disk
from frontend import Http2Frontend, Proxy
from starting import background
from test_volcano_why import queue


@pytest.fixture
def secure(pki):
    """An API server with TLS that has one job."""
    with ApiServer(pki) as server:
        server.store.add(st.JOBS, watching.job("one"))
        yield server


def works(server, kx, user="tester"):
    """Check that the job is shown, that kxfs has requested it as USER, and that changes arrive."""
    assert kx.ls("jobs") == ["one"]
    assert server.seen(resource="jobs")[-1].user == user
    server.store.add(st.JOBS, watching.job("two"))
    harness.wait_for(lambda: kx.ls("jobs") == ["one", "two"])


def goes_on(server, kx, name):
    """Check that watches start again and that new events arrive."""
    harness.wait_for(lambda: server.open_streams(resource="jobs"))
    server.store.add(st.JOBS, watching.job(name))
    harness.wait_for(lambda: name in kx.ls("jobs"))


def refused(kx):
    """Check that the start fails, and return its messages."""
    p = harness.run(kx.command(), check=False, env=kx.env())
    assert p.returncode == 1, p.stderr
    assert not harness.is_mounted(kx.mnt)
    return p.stderr


@pytest.mark.parametrize("make_user, name", [
    (lambda issue: kubeconfig.token(), "tester"),
    (lambda issue: kubeconfig.password("ada", "it's: a secret"), "ada"),
    (lambda issue: kubeconfig.certificate(issue("ada", "ada")), "ada"),
    (lambda issue: kubeconfig.certificate(issue("ada", "ada"), inline=True), "ada"),
    (lambda issue: {**kubeconfig.token(), "as": "bob", "as-groups": ["team"]}, "bob"),
], ids=["token", "password", "certificate files", "certificate", "impersonation"])
def test_user(secure, make_mount, pki, make_user, name):
    secure.passwords["ada"] = "it's: a secret"
    works(secure, make_mount(secure, config=kubeconfig.config(secure, make_user(pki.issue))), name)
    assert secure.requests[-1].headers.get("Impersonate-Group") == ("team" if name == "bob" else None)


def test_impersonation_by_option(secure, make_mount):
    works(secure, make_mount(secure, options="as=carol"), "carol")


def test_token_file_is_read_again(secure, make_mount, tmp_path):
    """The token in a file changes. After a 401, kxfs uses the new token. If the file is missing, the mount
    continues."""
    path = tmp_path / "token"
    path.write_text("test-token\n")
    kx = make_mount(secure, config=kubeconfig.config(secure, kubeconfig.token_file(path)))
    works(secure, kx)
    del secure.tokens["test-token"]
    secure.tokens["second"] = "tester"
    path.write_text("second\n")
    secure.end_streams("end")
    goes_on(secure, kx, "three")
    path.unlink()
    secure.end_streams("end")
    goes_on(secure, kx, "four")


def log_in(kx, tree):
    """Replace the kubeconfig of the mount, as login tools do."""
    path = pathlib.Path(kx.more_env["KUBECONFIG"])
    os.replace(kubeconfig.write(path.with_name("new"), tree), path)


def test_kubeconfig_is_read_again(secure, make_mount, pki):
    """A user logs in again while kxfs is mounted. After a 401, kxfs uses the new token or
    certificate of the kubeconfig. It does not use the credentials of a kubeconfig that is for
    another server."""
    kx = make_mount(secure)
    works(secure, kx)
    secure.tokens = {"second": "tester"}
    log_in(kx, kubeconfig.config(secure, kubeconfig.token("second")))
    secure.end_streams("end")
    goes_on(secure, kx, "three")
    secure.tokens = {"third": "tester"}
    log_in(kx, kubeconfig.config(secure, kubeconfig.token("third"), url="https://127.0.0.1:1"))
    secure.end_streams("end")
    harness.wait_for(lambda: "(401)" in kx.read(".kxfs", "info"), what="the refusal")
    assert harness.err_of(kx.write, "submit/app.yaml", harness.app("true")) == "EACCES"
    log_in(kx, kubeconfig.config(secure, kubeconfig.certificate(pki.issue("ada", "ada"), True)))
    goes_on(secure, kx, "four")
    assert secure.seen(resource="jobs")[-1].user == "ada"


def test_relative_kubeconfig_is_read_again(secure, make_mount):
    """The path of the kubeconfig is relative to the directory in which kxfs was started, although kxfs has left this
    directory."""
    kx = make_mount(secure, start=False, env={"KUBECONFIG": "missing:config"})
    path = kubeconfig.write(kx.work / "config", kubeconfig.config(secure))
    kx.start()
    secure.tokens = {"second": "tester"}
    kubeconfig.write(path, kubeconfig.config(secure, kubeconfig.token("second")))
    secure.end_streams("reset", verb="watch")
    works(secure, kx, "tester")


def plugin(directory, text, name="plugin"):
    """Write the credential plugin TEXT, a script, to the file NAME in DIRECTORY. Return its
    path."""
    path = directory / name
    path.write_text("#!/bin/sh\n" + textwrap.dedent(text))
    path.chmod(0o755)
    return path


def gives(token):
    """Return the text of a plugin that returns TOKEN."""
    return f"echo '{kubeconfig.plugin_reply(token=token)}'\n"


def fails_while(flag):
    """Return the beginning of a plugin that fails while the file FLAG exists."""
    return f'if test -e {flag}; then echo "Session over, run: login again" >&2; exit 7; fi\n'


@pytest.mark.parametrize("source", ["volcano:test", "test"], ids=["mount", "kind"])
def test_plugin_has_the_limits_of_the_user(secure, make_mount, tmp_path, source):
    """A plugin runs with the user's limit of descriptors. kxfs raises its own limit, with which programs that use
    select() would fail."""
    limits = "$(ulimit -Sn) $(ulimit -Hn) $(ls /proc/self/fd | wc -w)"
    command = plugin(tmp_path, f'echo "{limits}" >> {tmp_path}/limits\n' + gives("test-token"))
    kx = make_mount(secure, config=kubeconfig.config(secure, kubeconfig.plugin(command)), source=source, start=False)
    with background(kx, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (500, 600))):
        limits = (tmp_path / "limits").read_text().splitlines()
    assert set(limits) == {"500 600 4"}  # 0 to 2, and the directory that ls reads


def test_plugin(secure, make_mount, tmp_path):
    """A plugin runs once, with its own arguments and environment. After a 401 it runs again."""
    command = plugin(tmp_path, f'echo "$1 $GREETING" >> {tmp_path}/runs\n' + gives("test-token"))
    user = kubeconfig.plugin(command, "an argument; echo", env={"GREETING": "hi $HOME"})
    kx = make_mount(secure, config=kubeconfig.config(secure, user))
    works(secure, kx)
    assert (tmp_path / "runs").read_text() == "an argument; echo hi $HOME\n"
    del secure.tokens["test-token"]
    secure.tokens["second"] = "tester"
    plugin(tmp_path, gives("second"))
    secure.end_streams("end")
    goes_on(secure, kx, "three")


def test_plugin_on_a_disk_that_hangs(secure, make_mount, tmp_path):
    """The disk of a plugin hangs. Only requests that need the credential wait: events are shown, and the mount can
    be ended. When the disk recovers, everything continues."""
    (tmp_path / "tools").mkdir()
    kx = make_mount(secure, start=False)
    with contextlib.closing(Disk(kx, tmp_path / "tools")) as tools:
        command = plugin(tmp_path / "tools", f"cat {tmp_path}/reply\n")
        kubeconfig.write(pathlib.Path(kx.more_env["KUBECONFIG"]), kubeconfig.config(secure, kubeconfig.plugin(command)))
        (tmp_path / "reply").write_text(kubeconfig.plugin_reply(token="test-token"))
        (tmp_path / "app.yaml").write_text(harness.app("true"))
        kx.start()
        works(secure, kx)
        for serial in ("a", "b"):
            secure.tokens = {serial: "tester"}
            (tmp_path / "reply").write_text(kubeconfig.plugin_reply(token=serial))
            tools.hang("open", "/plugin")
            with tools.still():
                writer = harness.popen(["cp", tmp_path / "app.yaml", kx.mnt / f"submit/{serial}.yaml"], stderr=subprocess.DEVNULL)
                harness.wait_for(lambda: tools.hangs("/plugin"), what="the plugin's start")
                secure.store.add(st.JOBS, watching.job(f"seen-{serial}"))
                harness.wait_for(lambda name=f"seen-{serial}": name in kx.ls("jobs"))
                assert writer.poll() is None
                if serial == "b":
                    kx.end()
            tools.go_on()
            assert writer.wait(timeout=harness.LIMIT) == (serial == "b")


def test_plugin_with_certificate(secure, make_mount, tmp_path, pki):
    cert, key = pki.issue("ada", "ada")
    reply = kubeconfig.plugin_reply(clientCertificateData=cert.read_text(),
                                    clientKeyData=key.read_text())
    command = plugin(tmp_path, f"cat <<'END'\n{reply}\nEND\n")
    works(secure, make_mount(secure, config=kubeconfig.config(secure, kubeconfig.plugin(command))), "ada")


def test_plugin_that_fails(secure, make_mount, tmp_path):
    """The message of a failing plugin reaches the user who mounts, and later a user who submits.
    When the user has logged in, kxfs runs the plugin immediately for the next file, without waiting
    for its next retry. Meanwhile it shows all objects that it has listed before."""
    flag = tmp_path / "bad"
    secure.store.add(st.QUEUES, queue("default"))
    command = plugin(tmp_path, fails_while(flag) + gives("test-token"))
    config = kubeconfig.config(secure, kubeconfig.plugin(command))
    kx = make_mount(secure, config=config, start=False)
    flag.touch()
    assert "login again" in refused(kx)
    flag.unlink()
    kx.start()
    for name in ("a", "b", "c", "d"):  # several times, because the plugin ran at a different time before each
        flag.touch()
        secure.tokens.clear()
        secure.end_streams("end")
        harness.wait_for(lambda: "login again" in kx.read(".kxfs", "info"), what="the plugin's words")
        assert harness.err_of(kx.write, f"submit/{name}.yaml", harness.app("true")) == "EACCES"
        assert "login again" in kx.read("submit", f"{name}.yaml.error")
        assert "one" in kx.ls("jobs") and kx.ls("queues") == ["default"]
        secure.tokens["test-token"] = "tester"
        flag.unlink()
        kx.write(f"submit/{name}.yaml", harness.app("true"))
    goes_on(secure, kx, "three")
    assert kx.ls("queues") == ["default"]


def test_unknown_authority(secure, make_mount):
    """kxfs verifies TLS unless the kubeconfig disables that."""
    config = kubeconfig.config(secure, cluster={"certificate-authority-data": None})
    said = refused(make_mount(secure, config=config, start=False))
    assert "certificate" in said.lower()
    assert not secure.requests
    config = kubeconfig.config(secure, cluster={"certificate-authority-data": None,
                                                "insecure-skip-tls-verify": True})
    works(secure, make_mount(secure, config=config))


def test_tls_server_name(secure, make_mount):
    url = f"https://127.0.0.1:{secure.port}"
    config = kubeconfig.config(secure, url=url, cluster={"tls-server-name": "kubernetes.test"})
    works(secure, make_mount(secure, config=config))
    config = kubeconfig.config(secure, url=url, cluster={"tls-server-name": "other.test"})
    assert "other.test" in refused(make_mount(secure, config=config, start=False))


def test_proxy(secure, make_mount):
    with Proxy() as proxy:
        config = kubeconfig.config(secure, cluster={"proxy-url": proxy.url})
        works(secure, make_mount(secure, config=config))
        assert proxy.asked and set(proxy.asked) == {f"127.0.0.1:{secure.port}"}


def test_contexts(secure, make_mount, tmp_path):
    """kxfs merges the files in KUBECONFIG. SOURCE can name a context whose name contains a colon and slashes."""
    context = "arn:aws:eks:eu:1/cluster/a"
    other = kubeconfig.config(secure, context=context, namespace="elsewhere")
    first = kubeconfig.config(secure, url="https://127.0.0.1:1", context="dead")
    paths = [kubeconfig.write(tmp_path / f"part-{i}", tree) for i, tree in enumerate((first, other))]
    listed = {"KUBECONFIG": f"{tmp_path}/missing:{paths[0]}:{paths[1]}"}
    kx = make_mount(secure, source=f"volcano:{context}/test", env=listed)
    works(secure, kx)
    # If SOURCE has no namespace, the context's namespace is used.
    other["current-context"] = context
    secure.store.add(st.JOBS, watching.job("there", namespace="elsewhere"))
    kx = make_mount(secure, config=other, source="volcano:")
    assert kx.ls("jobs") == ["there"]


def test_option_wins(secure, make_mount, tmp_path):
    path = kubeconfig.write(tmp_path / "mine", kubeconfig.config(secure))
    kx = make_mount(secure, options=f"kubeconfig={path}", env={"KUBECONFIG": "/no/such/file"})
    works(secure, kx)


def test_home(secure, make_mount, tmp_path):
    (tmp_path / "home/.kube").mkdir(parents=True)
    kubeconfig.write(tmp_path / "home/.kube/config", kubeconfig.config(secure))
    works(secure, make_mount(secure, env={"KUBECONFIG": "", "HOME": str(tmp_path / "home")}))


def test_http2(make_mount, pki, tmp_path):
    """If the server offers HTTP/2, all requests use it."""
    with ApiServer() as server, Http2Frontend(server, pki, tmp_path) as front:
        server.store.add(st.JOBS, watching.job("one"))
        config = kubeconfig.config(front)
        kx = make_mount(server, config=config)
        works(server, kx)
        assert {req.headers.get("Via", "")[:1] for req in server.requests} == {"2"}


def test_credentials_are_shown_nowhere(secure, make_mount):
    kx = make_mount(secure, options="log_level=debug")
    works(secure, kx)
    text = kx.said()
    for top, _, names in os.walk(kx.mnt):
        for name in names:
            if not os.path.islink(os.path.join(top, name)):
                with open(os.path.join(top, name), errors="replace") as f:
                    text += f.read()
    assert "test-token" not in text


@pytest.mark.parametrize("to", ["token", "plugin"])
@pytest.mark.parametrize("old", ["fails", "old token"])
def test_another_way_to_log_in(make_mount, server, volcano, tmp_path, to, old):
    """A plugin's login expires: the plugin fails, or returns credentials that the server refuses. The user logs in by
    other means, and the next request uses the new login."""
    del volcano
    command = plugin(tmp_path, gives("test-token"))
    kx = make_mount(server, config=kubeconfig.config(server, user=kubeconfig.plugin(command)))
    kx.write("submit/one.yaml", harness.app("true"))
    plugin(tmp_path, f"echo run >> {tmp_path}/runs\nsleep 0.2\n" + (
        "echo log in again >&2; exit 1\n" if old == "fails" else gives("test-token")))
    server.tokens = {"new-token": "tester"}
    server.end_streams("reset", verb="watch")
    harness.wait_for(lambda: (tmp_path / "runs").exists(), what="the old plugin to be asked again")
    assert harness.err_of(kx.write, "submit/two.yaml", harness.app("true")) == "EACCES"
    other = plugin(tmp_path, gives("new-token"), "other")
    user = kubeconfig.token("new-token") if to == "token" else kubeconfig.plugin(other)
    log_in(kx, kubeconfig.config(server, user=user))
    kx.write("submit/two.yaml", harness.app("true"))
    assert kx.ls("jobs")


def test_another_way_to_log_in_without_writes(make_mount, secure, tmp_path):
    """A plugin fails, and the user logs in by other means. kxfs notices that although no user makes a request."""
    command = plugin(tmp_path, gives("test-token"))
    kx = make_mount(secure, options="ro", config=kubeconfig.config(secure, user=kubeconfig.plugin(command)))
    plugin(tmp_path, "echo log in again >&2; exit 1\n")
    secure.tokens = {"new-token": "tester"}
    secure.end_streams("end")
    harness.wait_for(lambda: "log in again" in kx.read(".kxfs", "info"), what="the failure")
    log_in(kx, kubeconfig.config(secure, user=kubeconfig.token("new-token")))
    goes_on(secure, kx, "two")
