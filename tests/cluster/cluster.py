# SPDX-License-Identifier: MIT
"""A whole Kubernetes on this machine's loopback interface, in one temporary directory.

  with Cluster() as cluster:
      cluster.kubectl("get", "nodes")
      cluster.parts["apiserver"].stop()

`python3 cluster.py` starts a cluster, prints how to reach it, and ends it on Ctrl-C. It requires
root. Several clusters may run at the same time. Each has a slot, which determines its ports.
Everything else is in its directory or its namespaces (node.py). Nothing outlives the process that
started the cluster."""

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
# These ports are below the kernel's range for clients, so no client gets one of them.
FIRST_PORT, PORTS_EACH, SLOTS = 21000, 16, 100
PORTS = ("apiserver", "etcd", "etcd-peer", "controller-manager", "scheduler", "kubelet",
         "kubelet-health", "webhook", "metrics")
# name of the kubeconfig: (user, groups) in the client certificate
CERTIFICATES = {
    "admin": ("kxfs-admin", ["system:masters"]),
    "cert": ("kxfs-cert", ["kxfs-tests"]),
    "kube-controller-manager": ("system:kube-controller-manager", []),
    "kube-scheduler": ("system:kube-scheduler", []),
    "kubelet": (f"system:node:{node.NODE}", ["system:nodes"]),
    "volcano": ("kxfs-volcano", ["system:masters"]),
}
# The rights of the users `token` and `cert`: everything in any namespace, but few cluster-wide
# resources.
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
    """A number that no other cluster of this machine has. The kernel releases it when this process
    ends."""

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
    """Return a kubeconfig (JSON is valid YAML) whose only context is `kxfs`. USER contains its
    user's fields."""
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
    """What our own cluster and a given one have in common: `kubectl_path`, `admin` (a kubeconfig,
    or None for the default one), and `client` (an api.Client with all rights)."""

    def kubectl(self, *args, kubeconfig=None, check=True, timeout=LIMIT, **kwargs):
        """Run kubectl, as the administrator unless KUBECONFIG is given."""
        path = kubeconfig or self.admin
        command = [self.kubectl_path, *([f"--kubeconfig={path}"] if path else []), *map(str, args)]
        p = subprocess.run(command, check=False, capture_output=True, text=True, timeout=timeout,
                           **({} if "input" in kwargs else {"stdin": subprocess.DEVNULL}), **kwargs)
        if check and p.returncode:
            raise AssertionError(f"kubectl {args}: status {p.returncode}\n{p.stdout}\n{p.stderr}")
        return p

    def apply(self, *objects, namespace=None):
        """Apply objects (dicts) on the server side."""
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        place = ["-n", namespace] if namespace else []
        return self.kubectl("apply", "--server-side", "--force-conflicts", *place, "-f", "-", input=text)

    def limited(self, namespace, directory):
        """Return the kubeconfig of a user who has only the rights of contrib/rbac.yaml, in
        NAMESPACE."""
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
    """A cluster at BASE that another process of the test run has started."""

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
        """Return the path of the kubeconfig of `admin`, `token` or `cert`, or of a part."""
        return self.base / "kubeconfig" / name

    # --- requests that the server received -----------------------------------------------------

    @property
    def audit_log(self):
        return self.base / "log" / "audit.log"

    def audit(self, user=None, since=0):
        """Yield entries of the API server's audit log (dicts), from offset SINCE, of USER if given."""
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
        """Return whether the namespace has what its pods require: the default service account and
        the CA certificate."""
        return all(self.is_served(f"/api/v1/namespaces/{namespace}/{path}")
                   for path in ("serviceaccounts/default", "configmaps/kube-root-ca.crt"))


class Cluster(Running):
    """etcd, kube-apiserver, kube-controller-manager, kube-scheduler, containerd and kubelet. With
    VOLCANO, also Volcano's definitions and the test controllers that simulate it.

    parts["etcd" | "apiserver" | "controller-manager" | "scheduler" | "volcano"], node.containerd
    and node.kubelet may be stopped and started."""

    here = HERE
    images = {"busybox": build.BUSYBOX, "pause": build.PAUSE}

    def __init__(self, directory=None, volcano=True, log_size="256Ki"):
        self.volcano = volcano
        self.log_size = log_size  # size in bytes at which the kubelet rotates a log
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
            # first, because the quota and garbage collectors discover resources at their start
            self.apply_definitions()
        self.parts["controller-manager"].start()
        self.parts["scheduler"].start()
        self.node.start()
        self.apply(*RIGHTS)
        if self.volcano:
            self.start_volcano()
        wait_for(self.node_ready, "the node to be ready")
        wait_for(lambda: self.has_account("default"), "the namespace default")

    def serve_behind(self, group, version, name, port):
        """Make a server of this machine on PORT serve the API GROUP/VERSION."""
        self.apply(
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"},
             "spec": {"type": "ExternalName", "externalName": "localhost"}},
            {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": f"{version}.{group}"},
             "spec": {"group": group, "version": version, "groupPriorityMinimum": 100, "versionPriority": 100,
                      "insecureSkipTLSVerify": True, "service": {"name": name, "namespace": "default", "port": port}}})
        wait_for(lambda: self.is_served(f"/apis/{group}/{version}"), f"{group} to be served")

    def apply_definitions(self):
        """Create Volcano's resource definitions."""
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
        """Return the kubeconfig of a user with this name and these groups, with a client
        certificate."""
        certificate, key = self.ca.make(f"user-{name}", user, groups)
        return self.write_kubeconfig(name, {
            "client-certificate-data": base64.b64encode(certificate.read_bytes()).decode(),
            "client-key-data": base64.b64encode(key.read_bytes()).decode()})

    # --- conditions --------------------------------------------------------------------------

    def wait_apiserver(self):
        """Wait until the API server answers. Call this after starting it again."""
        def ready():
            self.parts["apiserver"].check()
            try:
                self.client.send("GET", "/readyz")
            except (OSError, api.Refused):
                return False
            return True

        wait_for(ready, "the API server to be ready")

    def takes_jobs(self):
        """Return whether the webhook refuses a job for a missing queue. Then the webhook is running
        and queues exist."""
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

    # --- shutdown ------------------------------------------------------------------------------

    def stop(self):
        """End everything. It is an error if something remains."""
        if not self.janitor:
            return
        janitor, self.janitor = self.janitor, None
        try:
            if self.node:
                self.node.stop()
            for part in reversed(self.parts.values()):
                part.stop()
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
