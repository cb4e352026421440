# SPDX-License-Identifier: MIT
"""The start of a mount of a cluster, and kxfs doctor: which connections work, the messages of failures, and starts
that are ended."""

import contextlib
import email.utils
import fcntl
import itertools
import os
import pwd
import re
import signal
import socketserver
import threading
import time
import zlib

import kubeconfig
import pytest
import replies
import store as st
import yaml
from apiserver import ApiServer
from disk import Disk
from harness import LIMIT, ROOT, is_mounted, kill, marked_pids, popen, run, wait_for

# --- The start --------------------------------------------------------------------------------
# The messages of a mount that fails: printed once, with the error and the remedy.


def waits(source):
    return rf"kxfs: the list of jobs of {re.escape(source)} has not arrived yet; kxfs keeps trying(: .*)?\n"


@pytest.fixture
def said(make_kx, server):
    """said(config, source, options) returns the messages of a kxfs that refuses to mount. kxfs runs in the background,
    as users start it. CONFIG is a kubeconfig as a tree. Any start may take so long that kxfs prints that it is waiting;
    this message is omitted unless WAITED."""

    def attempt(config=None, source="volcano:test", options="", waited=False):
        kx = make_kx(start=False, options=options, source=source)
        path = kubeconfig.write(kx.base / "config", config or kubeconfig.config(server))
        p = run(kx.command(), check=False, env={**kx.env(), "KUBECONFIG": str(path)}, cwd=kx.work)
        wait_for(lambda: not marked_pids(), what="the end of what it has started")
        assert p.returncode == 1 and p.stdout == "" and not is_mounted(kx.mnt)
        return p.stderr if waited else re.sub(waits(source), "", p.stderr, count=1)

    return attempt


FORBIDDEN = ("forbidden: user tester may not list {} in namespace test, or this namespace does not exist\n"
             "Check the name of the namespace, or ask the cluster's administrator for the right.\n")
MISSING_PLUGIN = {"exec": {**kubeconfig.plugin("cloud-login")["exec"], "installHint": "Get it from the cloud."}}
MISSING_PLUGIN_SAID = ('credential plugin "cloud-login" can\'t be run: it is not installed, or not in PATH\n'
                       "Get it from the cloud.\n")


@pytest.mark.parametrize("user, how, message", [
    (None, {"source": "volcano:tets/test"},
     'kxfs: there is no context "tets"; did you mean "test"?; "kubectl config get-contexts" lists them\n'),
    (kubeconfig.token("old"), {},
     "kxfs: the server rejects the credentials (401)\n"
     "The credentials in the kubeconfig are wrong or have expired: log in again.\n"),
    (MISSING_PLUGIN, {}, MISSING_PLUGIN_SAID),
    (MISSING_PLUGIN, {"source": "test"}, MISSING_PLUGIN_SAID),
    (kubeconfig.token_file("/nowhere/token"), {},
     "token file /nowhere/token of the kubeconfig: No such file or directory\n"),
], ids=["context", "token", "plugin", "plugin, all kinds", "token file"])
def test_refused(said, server, user, how, message):
    """MESSAGE is the end of what kxfs prints, or all of it if it begins with the name of the
    program."""
    text = said(kubeconfig.config(server, user=user), **how)
    assert text == message if message.startswith("kxfs: ") else text.endswith(message)


@pytest.mark.parametrize("source, forbidden, resource", [
    ("volcano:test", ["pods"], "pods"),
    ("test", ["jobs", "appwrappers", "jobsets"], "jobs.batch.volcano.sh"),
])
def test_forbidden(said, server, source, forbidden, resource):
    server.forbidden += [{"resource": name} for name in forbidden]
    assert said(source=source) == "kxfs: " + FORBIDDEN.format(resource)


def test_no_volcano(said, server):
    server.uninstall(*st.VOLCANO)
    assert said() == (
        "kxfs: the cluster serves no Volcano jobs\nCheck that this is the right cluster, or ask "
        "the cluster's administrator to install them.\n")


def test_bad_selector(said):
    assert said(options="selector=a b").startswith("kxfs: the label selector is invalid: ")


def test_kubeconfig_with_a_mistake(said, tmp_path):
    (tmp_path / "broken").write_text("clusters:\n- name: [\n")
    assert f"{tmp_path / 'broken'}:" in said(options=f"kubeconfig={tmp_path / 'broken'}")


def test_plugin_that_fails(said, server):
    user = kubeconfig.plugin("sh", "-c", "echo run: cloud login >&2; exit 3")
    text = said(kubeconfig.config(server, user=user))
    first, rest = text.split("\n", 1)
    # kxfs immediately passes on what the plugin prints, because the plugin may ask for something.
    assert first == "run: cloud login"
    assert rest.startswith("kxfs: get /apis: ")
    assert rest.endswith(': credential plugin "sh" ended with exit code 3:\nrun: cloud login\n')
    assert rest.count("kxfs: ") == 1


@pytest.mark.waits
def test_http_to_https(said, pki):
    """kxfs retries for a while, because a server that is starting fails in the same way."""
    with ApiServer(pki) as secure:
        config = kubeconfig.config(secure)
        cluster = config["clusters"][0]["cluster"]
        cluster["server"] = cluster["server"].replace("https:", "http:")
        assert said(config).endswith("; if this server uses TLS, its URL in the kubeconfig must begin with https:\n")


@pytest.mark.waits
def test_server_is_down(said, server):
    server.away()
    waiting, refused = re.sub(r"after \d+ ms", "after 0 ms", said(waited=True)).splitlines()
    assert waiting.endswith(refused.split(": ", 2)[2]), "the reason, before it gives up"
    # The words in front of the semicolon depend on the version of curl.
    assert re.search("Couldn't connect to server|Connection refused", refused)
    assert "; is the server's URL in the kubeconfig right, and can this machine reach it" in refused


@pytest.mark.waits
@pytest.mark.parametrize("how, reason", [
    ("name", r"Could not resolve host: nowhere\.invalid; is the server's URL in the kubeconfig right"),
    ("silent", r"no answer yet; is the server's URL in the kubeconfig right"),
    ("busy", r"the server returned HTTP 503"),
    ("plugin", "kxfs is still waiting for the credentials")])
def test_says_what_it_waits_for(make_kx, server, how, reason):
    """If a start takes some seconds, kxfs prints the server and the reason, and continues."""
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
        wait_for(lambda: re.search(f"not arrived yet; kxfs keeps trying: {re.escape(address)}: {reason}", kx.said()), what=kx.said)
    finally:
        proc.terminate()
        proc.wait(60)


def test_no_cluster(make_kx):
    """Without a source and without a cluster, the message names the backend that needs no cluster. It does not if
    the source names another backend."""
    kx = make_kx(start=False)
    for source, mentioned in ((), True), (("volcano:",), False):
        p = run([kx.binary, *source, str(kx.mnt)], check=False, cwd=kx.work,
                env={**kx.env(), "KUBECONFIG": "/nowhere", "XDG_STATE_HOME": str(kx.base)})
        assert p.returncode == 1 and "none of the files in KUBECONFIG (/nowhere) exists" in p.stderr
        assert (f"kxfs local: {kx.mnt}\n" in p.stderr) == mentioned
        assert not (kx.base / "kxfs").exists()


# --- A start that is ended --------------------------------------------------------------------
# If a user interrupts a start, kxfs does not wait for the server. The command ends, and leaves nothing.

SOON = 15  # seconds; kxfs itself waits 30 s for a server


class Endless(socketserver.ThreadingTCPServer):
    """A server that replies to each request with the output of REPLY, which never ends. `sent` is
    the number of bytes that it has sent, and `asked` is set when a client has sent something."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, reply):
        super().__init__(("127.0.0.1", 0), EndlessReply)
        self.reply, self.sent, self.asked = reply, 0, threading.Event()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *exc):
        self.shutdown()
        super().__exit__(*exc)


class EndlessReply(socketserver.BaseRequestHandler):
    def handle(self):
        with contextlib.suppress(OSError):  # the client has gone
            self.request.recv(65536)
            self.server.asked.set()
            for piece in self.server.reply():
                self.request.sendall(piece)
                self.server.sent += len(piece)
            self.request.recv(1)


def silence():
    return []


@pytest.fixture
def begin(make_kx, server):
    """begin(source, args, url=, user=) starts a mount. It returns a Kxfs and the process of the command, which has
    its own process group."""
    started = []

    def go(source, args=(), **more):
        kx = make_kx(start=False, source=source)
        path = kubeconfig.write(kx.base / "config", kubeconfig.config(server, **more))
        with open(kx.messages, "ab") as err:
            started.append(popen(kx.command(*args), env={**kx.env(), "KUBECONFIG": str(path)}, cwd=kx.work,
                                 stdout=err, stderr=err, process_group=0))
        return kx, started[-1]

    yield go
    for p in started:
        if p.returncode is None:  # the process was not waited for, so no other process has its number
            os.killpg(p.pid, signal.SIGKILL)
        p.wait(timeout=LIMIT)


def ends(kx, p, sig):
    """Check that the command P ends soon, that its status or message shows SIG, and that it has left nothing."""
    since = time.monotonic()
    status = p.wait(timeout=LIMIT)
    assert time.monotonic() - since < SOON
    assert status == -sig or (status == 1 and "kxfs: stopped by a signal while starting\n" in kx.said()), kx.said()
    nothing_left(kx)
    # Killed processes may still exist for a moment.
    wait_for(lambda: not marked_pids(), timeout=SOON, what="the end of what it has started")


def nothing_left(kx):
    with open(kx.state / "lock", "ab") as f:
        fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fd = os.open(kx.mnt, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(fd)
    assert not is_mounted(kx.mnt)


def ctrl_c(p):
    """Send Ctrl-C as a terminal does, to the whole process group."""
    os.killpg(p.pid, signal.SIGINT)
    return signal.SIGINT


def alone(sig):
    """Return a function that sends SIG to the command that the user has started, but not to its child."""
    def send(p):
        kill(p.pid, sig)
        return sig
    return send


@pytest.mark.parametrize("interrupt", [ctrl_c, alone(signal.SIGINT), alone(signal.SIGTERM), alone(signal.SIGHUP)],
                         ids=["ctrl-c", "int", "term", "hup"])
@pytest.mark.parametrize("args", [(), ("-f",)], ids=["background", "foreground"])
@pytest.mark.parametrize("source", ["volcano:test", "test"], ids=["list", "kind"])
def test_silent_server(begin, source, args, interrupt):
    """A start that waits for a silent server can be interrupted. It waits for the first list, or for discovery if
    SOURCE names no backend."""
    with Endless(silence) as silent:
        kx, p = begin(source, args, url=silent.url)
        assert silent.asked.wait(LIMIT)
        ends(kx, p, interrupt(p))


@pytest.mark.parametrize("source", ["volcano:test", "test"], ids=["list", "kind"])
def test_plugin_that_waits(begin, tmp_path, source):
    """A start that waits for a credential plugin can be interrupted. The plugin has its own session, so Ctrl-C does
    not reach it."""
    asked = tmp_path / "asked"
    kx, p = begin(source, user=kubeconfig.plugin("sh", "-c", f"touch {asked}; exec sleep 1000"))
    wait_for(asked.exists, what="the plugin")
    ends(kx, p, ctrl_c(p))


def test_command_is_killed(begin):
    """If the command that the user has started is killed, its child ends too, and mounts nothing."""
    with Endless(silence) as silent:
        kx, p = begin("volcano:test", url=silent.url)
        assert silent.asked.wait(LIMIT)
        kill(p.pid, signal.SIGKILL)
        assert p.wait(timeout=LIMIT) == -signal.SIGKILL
        wait_for(lambda: not marked_pids(), timeout=SOON, what="the end of its child")
        nothing_left(kx)
    assert "kxfs: stopped by a signal while starting\n" in kx.said()


# --- an endless reply ---

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def objects():
    """Yield an endless list."""
    yield HEAD + b'\r\n{"items":['
    item = b'{"metadata":{"name":"j%d","namespace":"test","uid":"u%d","resourceVersion":"1"},"spec":{}},'
    for i in itertools.count(0, 1000):
        yield b"".join(item % (k, k) for k in range(i, i + 1000))


def bomb():
    """Yield a compressed reply that is a thousand times longer when it is uncompressed."""
    yield HEAD + b"Content-Encoding: gzip\r\n\r\n"
    press = zlib.compressobj(9, zlib.DEFLATED, 31)
    while True:
        yield press.compress(b" " * (1 << 24)) + press.flush(zlib.Z_SYNC_FLUSH)


def blanks():
    yield HEAD + b"\r\n"
    while True:
        yield b" " * 65536


def drip():
    """Yield a byte every half second, so that the server is never silent for long."""
    yield HEAD + b"\r\n"
    while True:
        time.sleep(0.5)
        yield b" "


@pytest.mark.parametrize("reply, much", [(objects, 20 << 20), (bomb, 200 << 10), (blanks, 20 << 20),
                                         (drip, len(HEAD) + 4)], ids=["objects", "bomb", "blanks", "drip"])
def test_server_without_end(begin, reply, much):
    """Whatever a server sends, and however fast: kxfs gives up or can be interrupted."""
    with Endless(reply) as server:
        kx, p = begin("volcano:test", ["-f"], url=server.url)
        wait_for(lambda: p.poll() is not None or server.sent > much, what="what does not end")
        if p.poll() is None:
            p.send_signal(signal.SIGTERM)
            since = time.monotonic()
            p.wait(timeout=LIMIT)
            assert time.monotonic() - since < SOON
        nothing_left(kx)


# --- kxfs doctor ------------------------------------------------------------------------------
# kxfs doctor reports on a cluster and whether a mount would work.


@pytest.fixture
def doctor(make_kx, server, tmp_path):
    """doctor(config, source, *options) returns (exit status, report without the part about this machine)."""

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
  ok       context test, namespace test, with a token
  ok       {server.url} answers: Kubernetes v1.36.1
  ok       the clocks of the server and of this machine agree
  ok       jobs of batch.volcano.sh/v1alpha1 are served
  ok       metrics.k8s.io/v1beta1 reports the resource usage of pods
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


WORKS, LIMITED, FAILS = ("Mounting will work.", "Mounting will work, with the limitations listed above.",
                         "Mounting will not work.")


@pytest.mark.parametrize("forbidden, verdict, lines", [
    ([{"resource": "events", "verb": "watch"}, {"resource": "queues"}, {"subresource": "log"}], LIMITED, [
        "  missing  events: this user may not watch, so there is no events file; ",
        "  missing  queues.scheduling.volcano.sh: this user may not list, watch, so queues/ shows only the queue",
        "  missing  pods/log: this user may not get, so kxfs can open only logs that it has already captured\n",
        "  ok       pods: list, watch\n"]),
    ([{"resource": "pods", "verb": "list", "subresource": ""}], FAILS, [
        "  wrong    pods: this user may not list, which every mount needs: check the namespace, or ask the cluster's "]),
    ([{"group": "metrics.k8s.io"}], LIMITED, [
        "  ok       metrics.k8s.io/v1 reports the resource usage of pods\n",
        "  missing  pods.metrics.k8s.io: this user may not list, so usage files show only what each replica requested\n"]),
], ids=["some", "needed", "usage"])
def test_rights_are_missing(doctor, server, forbidden, verdict, lines):
    server.install(st.METRICS)
    server.forbidden += forbidden
    check(doctor(), verdict, *lines)


def check(report, verdict, *lines):
    """Check REPORT, a result of doctor: its last line begins with VERDICT, its exit status agrees,
    and it has all LINES."""
    status, said = report
    assert said.splitlines()[-1].startswith(verdict) and status == (verdict == FAILS), said
    assert all(line in said for line in lines), said


def test_no_metrics_server(doctor):
    check(doctor(), LIMITED, "  missing  the cluster does not report the resource usage of pods "
                             "(no metrics-server): usage files show only what each replica requested\n")


def test_no_fuse(make_kx, tmp_path, server):
    """doctor reports that output can be captured even where mounting is impossible, as in a pod."""
    kx = make_kx(start=False)
    path = kubeconfig.write(tmp_path / "config", kubeconfig.config(server))
    p = run(["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /dev && exec "$@"', "sh", kx.binary, "doctor", "volcano:test"],
            check=False, env={**kx.env(), "KUBECONFIG": str(path), "HOME": str(kx.base)})
    assert p.returncode == 1 and "  wrong    /dev/fuse: " in p.stdout, p.stderr
    assert p.stdout.endswith("\nMounting will not work; kxfs capture, which needs no FUSE, will.\n")


def test_mine(doctor):
    """doctor says which jobs the option `mine` would show."""
    user = pwd.getpwuid(os.getuid()).pw_name
    status, said = doctor(None, "volcano:test", "-o", "mine")
    assert status == 0
    assert f"  ok       mine: the jobs with the label kxfs/user={user}\n" in said


def test_kueue(doctor, server):
    """doctor checks the rights for Kueue if the cluster has Kueue."""
    server.uninstall(*st.VOLCANO)
    server.install(st.NEW_APPWRAPPERS)
    assert "kueue" not in doctor(source="appwrapper:test")[1]
    server.install(*st.KUEUE)
    server.forbidden += [{"resource": "workloads"}]
    said = doctor(source="appwrapper:test")[1]
    assert "  ok       queues of kueue.x-k8s.io/v1beta2 are served\n" in said
    assert "  missing  workloads.kueue.x-k8s.io: this user may not list, watch, so the file \"why\" can't report what a job in a Kueue queue" in said
    assert "  ok       localqueues/pendingworkloads.visibility.kueue.x-k8s.io: get\n" in said
    assert "  ok       clusterqueues.kueue.x-k8s.io: list, watch\n" in said


def test_queues_of_kueue(doctor, server):
    """doctor lists the queues of the namespace, so that users need not guess, and reports whether the mount's queue
    is one of them."""
    source = "jobset:test"

    def said(*options):
        status, text = doctor(None, source, *options)
        assert status == 0
        return [line for line in text.splitlines() if "queues of namespace" in line or "is no such queue" in line]

    server.install(st.JOBSETS, *st.KUEUE)
    assert said() == ["  ok       queues of namespace test: none"]
    for name in ("team", "research"):
        server.store.add(st.KUEUE[1], {"metadata": {"name": name, "namespace": "test"}, "spec": {"clusterQueue": "cq"}})
    server.store.add(st.KUEUE[1], {"metadata": {"name": "far", "namespace": "other"}, "spec": {"clusterQueue": "cq"}})
    assert said() == said("-o", "queue=team") == ["  ok       queues of namespace test: research, team"]
    assert said("-o", "queue=taem") == [
        "  ok       queues of namespace test: research, team",
        "  missing  -o queue=taem: there is no such queue, so jobs wait until somebody creates it: "
        "correct the name, or create the queue"]
    server.forbidden.append({"resource": "localqueues"})
    assert said("-o", "queue=taem") == []
    server.forbidden.clear()
    source = "test"  # files become Volcano jobs here, so the option names a queue of Volcano
    assert said("-o", "queue=taem") == ["  ok       queues of namespace test: research, team"]


def test_what_is_served_is_found(doctor, server):
    server.uninstall(*st.VOLCANO)
    server.install(st.APPWRAPPERS)
    report = doctor(None, "")
    check(report, LIMITED, "  ok       appwrappers of workload.codeflare.dev/v1beta1 are served\n",
          "  ok       appwrappers.workload.codeflare.dev: get, list, watch\n")
    assert "volcano" not in report[1]
    check(doctor(), FAILS, "  wrong    the cluster serves no Volcano jobs: check that this is the right "
                           "cluster, or ask the cluster's administrator to install them\n")


def test_all_kinds(doctor, server):
    """The report has lines for each kind that the cluster serves. A forbidden kind does not prevent a mount, unless
    all kinds are forbidden."""
    server.install(st.NEW_APPWRAPPERS, st.JOBSETS, st.BATCH_JOBS)
    check(doctor(None, "test"), LIMITED, *(
        f"  ok       {resource}: {verbs}\n" for verbs in ("get, list, watch", "create") for resource in (
            "jobs.batch.volcano.sh", "appwrappers.workload.codeflare.dev",
            "jobsets.jobset.x-k8s.io", "jobs.batch")))
    server.forbidden.append({"resource": "jobsets"})
    check(doctor(None, "test"), LIMITED,
          "  missing  jobsets.jobset.x-k8s.io: this user may not get, list, watch, so kxfs does not show these jobs\n")
    assert doctor(None, "jobset:test")[0] == 1
    server.forbidden += [{"resource": "jobs"}, {"resource": "appwrappers"}]
    check(doctor(None, "test"), FAILS,
          "  wrong    this user may not list jobs of any kind: check the namespace, or ask the cluster's ")


def test_clock(doctor, server):
    server.date = "Wed, 21 Oct 2015 07:28:00 GMT"
    check(doctor(), LIMITED, "  missing  the server's clock is ", " s behind this machine's clock, ")


def test_clock_of_a_slow_server(doctor, server):
    """doctor compares the clocks, and does not count the latency of a reply as a difference."""
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
    check(doctor(), FAILS, "  wrong    get /version")


def test_wrong_token(doctor, server):
    check(doctor(kubeconfig.config(server, user=kubeconfig.token("old"))), FAILS,
          "  wrong    the server rejects the credentials (401)\n")


RBAC = (ROOT / "contrib/rbac.yaml").read_text()


def rights_of(text):
    """Return the rights of each role in TEXT as a set of (API group, resource, verb)."""
    return [{(group, resource, verb) for rule in role["rules"] for group in rule["apiGroups"]
             for resource in rule["resources"] for verb in rule["verbs"]}
            for role in yaml.safe_load_all(text) if role["kind"] in ("Role", "ClusterRole")]


def test_rbac_has_these_rights(doctor, server):
    """contrib/rbac.yaml grants exactly the rights that doctor checks."""
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
    assert asked == set().union(*rights_of(RBAC))


def test_prints_role(binary, tmp_path):
    """`doctor --rbac` needs no cluster. It prints the rights of contrib/rbac.yaml, those of a capture, and those for
    the kind of a user's file."""
    def rbac(*words):
        p = run([binary, "doctor", "--rbac", *words])
        assert p.stdout.count("apiGroups") == len({line for line in p.stdout.split("- ")[1:]})
        return rights_of(p.stdout)

    assert rbac() == rights_of(RBAC)
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
    """doctor tests whether the archive can be written, and leaves no file there."""
    archive = tmp_path / "archive"

    def said():
        return doctor(None, "volcano:test", "-o", f"archive={archive}")

    check(said(), LIMITED, f"\nThe archive\n  missing  archive {archive}: No such file or directory\n")
    archive.mkdir()
    check(said(), LIMITED, f"\nThe archive\n  ok       archive {archive}: can be written to\n")
    assert not list(archive.iterdir())


def test_a_disk_that_hangs(make_kx, server, tmp_path):
    """The disk with the token's file hangs. doctor reports that, and ends."""
    (tmp_path / "secrets").mkdir()
    kx = make_kx(start=False)
    with contextlib.closing(Disk(kx, tmp_path / "secrets")) as disk:
        (tmp_path / "secrets/token").write_text("test-token")
        path = kubeconfig.write(tmp_path / "config", kubeconfig.config(server, kubeconfig.token_file(tmp_path / "secrets/token")))
        disk.hang("open", "/token")
        with disk.still():
            # LeakSanitizer would stop all threads and wait for the hanging one, so disable it.
            p = run([kx.binary, "doctor", "volcano:test"], check=False,
                    env={**kx.env(), "KUBECONFIG": str(path), "LSAN_OPTIONS": "detect_leaks=0"})
    assert p.returncode == 1 and p.stdout.endswith("""
  wrong    get /version: kxfs could not read the credential files of the kubeconfig in time
Mounting will not work.
"""), p.stderr
