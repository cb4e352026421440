# SPDX-License-Identifier: MIT
"""A whole Kubernetes on this machine's loopback, in one temporary directory.

    with Cluster() as cluster:
        cluster.kubectl("get", "nodes")
        cluster.parts["apiserver"].stop()

`python3 cluster.py` starts one, prints how to reach it, and ends it on Ctrl-C.
Needs root. Several may run beside each other: each has a slot, and with it its ports; all else is
in its directory or its namespaces (node.py). Nothing outlives the process that started it.
"""

import base64
import functools
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

import api
import build
import control
import node
from process import LIMIT, Part, start_janitor, wait_for

HERE = pathlib.Path(__file__).resolve().parent
# Ports are below those that the kernel gives to clients, so nobody takes one in between.
FIRST_PORT, PORTS_EACH, SLOTS = 21000, 16, 100
PORTS = ("apiserver", "etcd", "etcd-peer", "controller-manager", "scheduler", "kubelet",
         "kubelet-health", "webhook", "metrics")
# name of the kubeconfig: (user, groups) by client certificate
CERTIFICATES = {
    "admin": ("kxfs-admin", ["system:masters"]),
    "cert": ("kxfs-cert", ["kxfs-tests"]),
    "kube-controller-manager": ("system:kube-controller-manager", []),
    "kube-scheduler": ("system:kube-scheduler", []),
    "kubelet": (f"system:node:{node.NODE}", ["system:nodes"]),
    "volcano": ("kxfs-volcano", ["system:masters"]),
}
# What the users `token` and `cert` may do: everything in any namespace, little about the cluster.
RIGHTS = [
    {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
     "metadata": {"name": "kxfs-tests-admin"},
     "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
     "subjects": [{"kind": "Group", "name": "kxfs-tests"}]},
    {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
     "metadata": {"name": "kxfs-tests-volcano"},
     "rules": [{"apiGroups": ["batch.volcano.sh", "bus.volcano.sh", "scheduling.volcano.sh",
                              "workload.codeflare.dev"], "resources": ["*"], "verbs": ["*"]},
               {"apiGroups": [""], "resources": ["events"], "verbs": ["*"]}]},
    {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
     "metadata": {"name": "kxfs-tests-volcano"},
     "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                 "name": "kxfs-tests-volcano"},
     "subjects": [{"kind": "Group", "name": "kxfs-tests"}]},
]


class Slot:
    """A number that no other cluster of this machine has; the kernel gives it back at our end."""

    def __init__(self):
        for self.number in range(SLOTS):
            self.mark = socket.socket(socket.AF_UNIX)
            try:
                self.mark.bind(f"\0kxfs-cluster-{self.number}")
            except OSError:
                self.mark.close()
                continue
            first = FIRST_PORT + PORTS_EACH * self.number
            self.ports = {name: first + i for i, name in enumerate(PORTS)}
            if all(map(self.is_free, self.ports.values())):
                return
            self.mark.close()
        raise RuntimeError("no ports are free for a cluster")

    @staticmethod
    def is_free(port):
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                return False
        return True


def kubeconfig_text(server, ca, user, namespace="default"):
    """A kubeconfig (JSON is YAML) whose only context is `kxfs`; USER is its user's fields."""
    data = base64.b64encode(pathlib.Path(ca).read_bytes()).decode()
    return json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "kxfs",
        "clusters": [{"name": "kxfs", "cluster": {
            "server": server, "certificate-authority-data": data}}],
        "contexts": [{"name": "kxfs", "context": {
            "cluster": "kxfs", "user": "kxfs", "namespace": namespace}}],
        "users": [{"name": "kxfs", "user": user}],
    }, indent=1) + "\n"


class Kubectl:
    """What a cluster of our own and a given one have in common: `kubectl_path`, `admin` (a
    kubeconfig, or None for the environment's), `client` (an api.Client with all rights)."""

    def kubectl(self, *args, kubeconfig=None, check=True, timeout=LIMIT, **kwargs):
        """subprocess.run of kubectl, as the administrator unless KUBECONFIG is given."""
        path = kubeconfig or self.admin
        command = [self.kubectl_path, *([f"--kubeconfig={path}"] if path else []), *map(str, args)]
        p = subprocess.run(command, check=False, capture_output=True, text=True, timeout=timeout,
                           **({} if "input" in kwargs else {"stdin": subprocess.DEVNULL}), **kwargs)
        if check and p.returncode:
            raise AssertionError(f"kubectl {args}: status {p.returncode}\n{p.stdout}\n{p.stderr}")
        return p

    def apply(self, *objects, namespace=None):
        """Server-side apply of objects (dicts)."""
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        place = ["-n", namespace] if namespace else []
        return self.kubectl("apply", "--server-side", "--force-conflicts", *place, "-f", "-", input=text)

    def limited(self, namespace, directory):
        """A kubeconfig of a user with the rights of contrib/rbac.yaml in NAMESPACE, no others."""
        self.kubectl("apply", "-n", namespace, "-f", build.ROOT / "contrib/rbac.yaml")
        self.apply(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "kxfs"}},
            {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
             "metadata": {"name": "kxfs"},
             "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "kxfs"},
             "subjects": [{"kind": "ServiceAccount", "name": "kxfs", "namespace": namespace}]},
            namespace=namespace)
        token = self.kubectl("create", "token", "kxfs", "-n", namespace, "--duration=24h").stdout.strip()
        config = json.loads(self.kubectl("config", "view", "--raw", "--minify", "--flatten",
                                         "-o", "json").stdout)
        config["users"][0]["user"] = {"token": token}
        config["contexts"][0]["context"]["namespace"] = namespace
        path = pathlib.Path(directory) / f"limited-{namespace}.kubeconfig"
        path.write_text(json.dumps(config))
        path.chmod(0o644)
        return path


class Running(Kubectl):
    """A cluster that somebody else has started at BASE (another process of the test run)."""

    def __init__(self, base):
        self.base = pathlib.Path(base)
        self.parts_dir = build.parts()

    @property
    def kubectl_path(self):
        return self.parts_dir / "kubectl"

    @property
    def admin(self):
        return self.kubeconfig("admin")

    @functools.cached_property
    def client(self):
        return api.from_kubeconfig(self.kubectl_path, self.admin)

    def kubeconfig(self, name):
        """Path of the kubeconfig of `admin`, `token` or `cert` (or of a part)."""
        return self.base / "kubeconfig" / name

    # --- what the server was asked -----------------------------------------------------------

    @property
    def audit_log(self):
        return self.base / "log" / "audit.log"

    def audit(self, user=None, since=0):
        """Entries of the API server's audit log (dicts), of one user name, from offset SINCE."""
        with open(self.audit_log, "rb") as file:
            file.seek(since)
            for line in file.read().split(b"\n")[:-1]:
                entry = json.loads(line)
                if user is None or entry["user"].get("username") == user:
                    yield entry

    # --- conditions --------------------------------------------------------------------------

    def is_served(self, path):
        try:
            return self.client.get(path)
        except api.Refused:
            return False

    def has_account(self, namespace):
        """Pods of a namespace need its default service account and the authority's certificate."""
        return all(self.is_served(f"/api/v1/namespaces/{namespace}/{path}")
                   for path in ("serviceaccounts/default", "configmaps/kube-root-ca.crt"))


class Cluster(Running):
    """etcd, kube-apiserver, kube-controller-manager, kube-scheduler, containerd, kubelet, and
    with VOLCANO its definitions and the test controllers that stand in for it.

    parts["etcd" | "apiserver" | "controller-manager" | "scheduler" | "volcano"] and
    node.containerd, node.kubelet may be stopped and started.
    """

    here = HERE
    images = {"busybox": build.BUSYBOX, "pause": build.PAUSE}

    def __init__(self, directory=None, volcano=True, log_size="256Ki"):
        self.volcano = volcano
        self.log_size = log_size  # bytes at which the kubelet rotates a log
        self.directory = directory or os.environ.get("KXFS_TEST_DIR", tempfile.gettempdir())
        self.parts = {}
        self.base = self.janitor = self.node = self.ca = self.slot = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def start(self):
        if os.geteuid():
            raise RuntimeError("a cluster needs root: it runs containers")
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("start it in the main thread: the parts end with the thread")
        self.parts_dir = build.parts()
        self.slot = Slot()
        self.ports = self.slot.ports
        self.server = f"https://127.0.0.1:{self.ports['apiserver']}"
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="kxfs-cluster-", dir=self.directory))
        self.base.chmod(0o755)
        group = self.base.name
        self.janitor = start_janitor(self.base, group)
        try:
            self.write_files(group)
            self.start_parts()
        except BaseException:
            self.stop()
            raise
        return self

    def write_files(self, group):
        for name in ("log", "kubeconfig"):
            (self.base / name).mkdir()
        self.ca = control.Authority(self.base / "pki")
        for name, (user, groups) in CERTIFICATES.items():
            self.add_certificate(name, user, groups)
        token = os.urandom(16).hex()
        (self.base / "tokens.csv").write_text(f'{token},kxfs-token,kxfs-token,"kxfs-tests"\n')
        self.write_kubeconfig("token", {"token": token})
        self.node = node.Node(self, group)
        self.node.write_files()
        control.write_files(self)

    def start_parts(self):
        for name, make in (("etcd", control.etcd), ("apiserver", control.apiserver),
                           ("controller-manager", control.controller_manager),
                           ("scheduler", control.scheduler)):
            self.parts[name] = make(self)
        self.parts["etcd"].start()
        self.parts["apiserver"].start()
        self.wait_apiserver()
        if self.volcano:
            self.apply_definitions()  # first: quota and garbage are about what is there at the start
        self.parts["controller-manager"].start()
        self.parts["scheduler"].start()
        self.node.start()
        self.apply(*RIGHTS)
        if self.volcano:
            self.start_volcano()
        wait_for(self.node_ready, "the node to be ready")
        wait_for(lambda: self.has_account("default"), "the namespace default")

    def serve_behind(self, group, version, name, port):
        """The API GROUP/VERSION is that of a server of this machine on PORT."""
        self.apply(
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"},
             "spec": {"type": "ExternalName", "externalName": "localhost"}},
            {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": f"{version}.{group}"},
             "spec": {"group": group, "version": version, "groupPriorityMinimum": 100, "versionPriority": 100,
                      "insecureSkipTLSVerify": True, "service": {"name": name, "namespace": "default", "port": port}}})
        wait_for(lambda: self.is_served(f"/apis/{group}/{version}"), f"{group} to be served")

    def apply_definitions(self):
        """Volcano's resources."""
        self.kubectl("apply", "--server-side", f"--filename={HERE.parent / 'replay/data/crds/volcano.yaml'}")
        for resource in ("jobs", "commands", "podgroups", "queues"):
            wait_for(lambda r=resource: self.is_served(api.path_of(r)), f"{resource} to be served")

    def start_volcano(self):
        self.ca.make("volcano", "volcano", hosts=("127.0.0.1",))
        self.parts["volcano"] = Part("volcano", self.base, [
            sys.executable, HERE / "controllers/main.py", self.kubectl_path, self.kubeconfig("volcano"),
            self.ports["webhook"], self.ca.dir]).start()
        wait_for(self.takes_jobs, "Volcano to take jobs")

    # --- kubeconfigs -------------------------------------------------------------------------

    def write_kubeconfig(self, name, user):
        path = self.kubeconfig(name)
        path.write_text(kubeconfig_text(self.server, self.ca.ca, user))
        path.chmod(0o644)  # tests run as ordinary users too
        return path

    def add_certificate(self, name, user, groups=()):
        """A kubeconfig of a user of that name and groups, by client certificate."""
        certificate, key = self.ca.make(f"user-{name}", user, groups)
        return self.write_kubeconfig(name, {
            "client-certificate-data": base64.b64encode(certificate.read_bytes()).decode(),
            "client-key-data": base64.b64encode(key.read_bytes()).decode()})

    # --- conditions --------------------------------------------------------------------------

    def wait_apiserver(self):
        """Until the API server answers; call it after starting it again."""
        def ready():
            self.parts["apiserver"].check()
            try:
                self.client.send("GET", "/readyz")
            except (OSError, api.Refused):
                return False
            return True

        wait_for(ready, "the API server to be ready")

    def takes_jobs(self):
        """The webhook answers, and there is a queue, when a job for no queue is refused in its words."""
        self.parts["volcano"].check()
        job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "probe"},
               "spec": {"queue": "no-such-queue", "tasks": [{"name": "one", "replicas": 1, "template": {
                   "spec": {"containers": [{"name": "one", "image": "none"}]}}}]}}
        try:
            self.client.post(api.path_of("jobs", "default") + "?dryRun=All", job)
        except api.Refused as e:
            queue = self.is_served(api.path_of("queues", None, "default"))
            return "unable to find job queue" in e.message and queue and queue.get("status")
        return False

    def node_ready(self):
        for part in (*self.parts.values(), self.node.containerd, self.node.kubelet):
            part.check()
        return any(condition["type"] == "Ready" and condition["status"] == "True"
                   for item in self.client.items("/api/v1/nodes") if "taints" not in item["spec"]
                   for condition in item["status"].get("conditions", ()))

    # --- the end -----------------------------------------------------------------------------

    def stop(self):
        """End everything; what is left over is an error."""
        if not self.janitor:
            return
        janitor, self.janitor = self.janitor, None
        try:
            if self.node:
                self.node.stop()
            for name in ("volcano", "scheduler", "controller-manager", "apiserver", "etcd"):
                if name in self.parts:
                    self.parts[name].stop()
        finally:
            if os.environ.get("KXFS_CLUSTER_LOGS"):
                shutil.copytree(self.base / "log", os.environ["KXFS_CLUSTER_LOGS"], dirs_exist_ok=True)
            _, said = janitor.communicate(timeout=LIMIT * 2)
            self.slot.mark.close()
            if janitor.returncode:
                raise RuntimeError(f"the cluster was not cleaned up: {said.decode()}")


def main():
    with Cluster() as cluster:
        print(f"export KUBECONFIG={cluster.admin} PATH={cluster.parts_dir}:$PATH", flush=True)
        try:
            sys.stdin.read() if not sys.stdin.isatty() else threading.Event().wait()
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
