# SPDX-License-Identifier: MIT
"""Messages of a mount that fails: once, the error, and the remedy."""

import os
import re

import kubeconfig
import pytest
import replies
import store as st
from apiserver import ApiServer
from harness import is_mounted, marked_pids, popen, run, wait_for


def waits(source):
    return rf"kxfs: the list of jobs of {re.escape(source)} has not arrived yet; still trying(: .*)?\n"


@pytest.fixture
def said(make_kx, server):
    """Return said(config, source, options) -> kxfs's messages when it refuses to mount, in the background as users
    start it. CONFIG: a kubeconfig as a tree. The message that it waits, printed after some seconds, is omitted
    unless it is WAITED for: any start may take that long."""

    def attempt(config=None, source="volcano:test", options="", waited=False):
        kx = make_kx(start=False, options=options, source=source)
        path = kubeconfig.write(kx.base / "config", config or kubeconfig.config(server))
        p = run(kx.command(), check=False, env={**kx.env(), "KUBECONFIG": str(path)}, cwd=kx.work)
        wait_for(lambda: not marked_pids(), what="the end of what it has started")
        assert p.returncode == 1 and p.stdout == "" and not is_mounted(kx.mnt)
        return p.stderr if waited else re.sub(waits(source), "", p.stderr, count=1)

    return attempt


def test_wrong_context(said):
    assert said(source="volcano:tets/test") == (
        'kxfs: there is no context "tets"; did you mean "test"?; "kubectl config get-contexts" lists them\n')


def test_expired_token(said, server):
    assert said(kubeconfig.config(server, user=kubeconfig.token("old"))) == (
        "kxfs: the server rejects the credentials (401)\nThe "
        "credentials in the kubeconfig are wrong or have expired: log "
        "in again.\n")


def test_forbidden(said, server):
    server.forbidden.append({"resource": "pods"})
    assert said() == (
        "kxfs: forbidden: user tester may not list pods in namespace "
        "test, or it does not exist\nCheck the name of the "
        "namespace, or ask the cluster's administrator for the right.\n")


def test_plugin_that_fails(said, server):
    user = kubeconfig.plugin("sh", "-c", "echo run: cloud login >&2; exit 3")
    text = said(kubeconfig.config(server, user=user))
    first, rest = text.split("\n", 1)
    assert first == "run: cloud login"  # at once, since it might ask for something
    assert rest.startswith("kxfs: get /apis: ")
    assert rest.endswith(': credential plugin "sh" ended with exit code 3:\nrun: cloud login\n')
    assert rest.count("kxfs: ") == 1


@pytest.mark.parametrize("source", ["volcano:test", "test"])
def test_plugin_that_is_missing(said, server, source):
    user = kubeconfig.plugin("cloud-login")
    user["exec"]["installHint"] = "Get it from the cloud."
    assert said(kubeconfig.config(server, user=user), source).endswith(
        'credential plugin "cloud-login" can\'t be run: it is not installed, or not in PATH\nGet it from the cloud.\n')


def test_no_volcano(said, server):
    server.uninstall(*st.VOLCANO)
    assert said() == (
        "kxfs: the cluster serves no Volcano jobs\nIs it the right cluster? "
        "Otherwise ask its administrator to install them.\n")


def test_bad_selector(said):
    assert said(options="selector=a b").startswith("kxfs: the selector of labels is wrong: ")


def test_token_file_is_missing(said, server):
    assert said(kubeconfig.config(server, user=kubeconfig.token_file("/nowhere/token"))).endswith(
        "token file /nowhere/token of the kubeconfig: No such file or directory\n")


@pytest.mark.waits
def test_http_to_https(said, pki):
    """It is retried for a while, since a starting server fails in the same way."""
    with ApiServer(pki) as secure:
        config = kubeconfig.config(secure)
        cluster = config["clusters"][0]["cluster"]
        cluster["server"] = cluster["server"].replace("https:", "http:")
        assert said(config).endswith("; if this server speaks https, server of the kubeconfig must begin with https:\n")


@pytest.mark.waits
def test_server_is_down(said, server):
    server.away()
    waiting, refused = said(waited=True).splitlines()
    assert waiting.endswith(refused.split(": ", 2)[2]), "the reason, before it gives up"
    # The words before the semicolon depend on curl's version.
    assert re.search("Couldn't connect to server|Connection refused", refused)
    assert "; is server of the kubeconfig right, and can it be reached from here" in refused


@pytest.mark.waits
@pytest.mark.parametrize("how, reason", [
    ("name", r"Could not resolve host: nowhere\.invalid; is server of the kubeconfig right"),
    ("silent", r"no answer yet; is server of the kubeconfig right"),
    ("busy", r"the answer is HTTP 503"),
    ("plugin", "kxfs waits for the credentials")])
def test_says_what_it_waits_for(make_kx, server, how, reason):
    """After some seconds it names the server and the reason, and continues."""
    user = kubeconfig.plugin("sleep", "1000") if how == "plugin" else None
    url = "https://nowhere.invalid:6443" if how == "name" else server.url
    if how == "silent":
        server.faults.add("silent", times=1000)
    if how == "busy":
        server.faults.add("reply", times=1000, reply=replies.status(503, "ServiceUnavailable", "busy"))
    address = url.split("//")[1]
    kx = make_kx(start=False, source="volcano:test")
    path = kubeconfig.write(kx.base / "config", kubeconfig.config(server, user=user, url=url))
    with open(kx.messages, "wb") as err:
        proc = popen(kx.command("-f"), env={**kx.env(), "KUBECONFIG": str(path)}, cwd=kx.work, stderr=err)
    try:
        wait_for(lambda: re.search(f"not arrived yet; still trying: {re.escape(address)}: {reason}", kx.said()), what=kx.said)
    finally:
        proc.terminate()
        proc.wait(60)


def test_leaves_no_new_state_directory(make_kx, server):
    """A failed mount leaves no new state directory, nor its parents; an existing one remains."""
    server.forbidden.append({"resource": "pods"})
    kx = make_kx(start=False, source="volcano:test")
    path = kubeconfig.write(kx.base / "config", kubeconfig.config(server))
    env = {**kx.env(), "KUBECONFIG": str(path)}
    there, kx.state = kx.state, kx.state / "not/yet"
    for how in ([], ["-f"]):
        p = run(kx.command(*how), check=False, env=env, cwd=kx.work)
        wait_for(lambda: not marked_pids(), what="the end of what it has started")
        assert p.returncode == 1 and "forbidden" in p.stderr
        assert os.listdir(there) == []
    kx.state = there
    assert run(kx.command(), check=False, env=env, cwd=kx.work).returncode == 1
    wait_for(lambda: not marked_pids(), what="the end of what it has started")
    assert "lock" in os.listdir(there)


def test_no_cluster(make_kx):
    """Without a source and without a cluster, the message names the backend that needs none; not if the source names
    a backend."""
    kx = make_kx(start=False)
    for source, mentioned in ((), True), (("volcano:",), False):
        p = run([kx.binary, *source, str(kx.mnt)], check=False, cwd=kx.work,
                env={**kx.env(), "KUBECONFIG": "/nowhere", "XDG_STATE_HOME": str(kx.base)})
        assert p.returncode == 1 and "no file of KUBECONFIG (/nowhere) exists" in p.stderr
        assert (f"kxfs local: {kx.mnt}\n" in p.stderr) == mentioned
        assert not (kx.base / "kxfs").exists()
