# SPDX-License-Identifier: MIT
"""The control plane: certificates, command lines and files of etcd, API server, controllers and
scheduler."""

import json
import subprocess

from process import Part

# --- Certificates -----------------------------------------------------------------------------
# The certificates of the test cluster, made by openssl: one CA, P-256 keys.


class Authority:
    """A certificate authority in DIRECTORY: ca.crt, ca.key, NAME.crt, NAME.key."""

    def __init__(self, directory):
        self.dir = directory
        self.dir.mkdir()
        self.ca = directory / "ca.crt"
        self.key("ca")
        self.openssl("req", "-x509", "-new", "-key", "ca.key", "-out", "ca.crt", "-days", "30",
                     "-subj", "/CN=kxfs tests")

    def openssl(self, *args):
        p = subprocess.run(["openssl", *args], cwd=self.dir, check=False, capture_output=True,
                           text=True, timeout=60)
        if p.returncode:
            raise RuntimeError(f"openssl {args}: {p.stderr}")

    def key(self, name):
        self.openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{name}.key")

    def make(self, name, user, groups=(), hosts=()):
        """Return (certificate, key) of USER as PEM files, for a client and for a server on HOSTS."""
        self.key(name)
        subject = "".join(f"/O={group}" for group in groups) + f"/CN={user}"
        extensions = ["extendedKeyUsage=clientAuth,serverAuth"]
        if hosts:
            kinds = (f"{'IP' if host[0].isdigit() else 'DNS'}:{host}" for host in hosts)
            extensions.append(f"subjectAltName={','.join(kinds)}")
        (self.dir / f"{name}.ext").write_text("\n".join(extensions) + "\n")
        self.openssl("req", "-new", "-key", f"{name}.key", "-out", f"{name}.csr", "-subj", subject)
        self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key",
                     "-CAcreateserial", "-days", "30", "-extfile", f"{name}.ext",
                     "-out", f"{name}.crt")
        return self.dir / f"{name}.crt", self.dir / f"{name}.key"


# --- Parts ------------------------------------------------------------------------------------
# Command lines and files of the control plane: etcd, API server, controllers, scheduler.

SERVICE_RANGE = "10.96.0.0/16"
# Both schedulers only bind pods. The test controllers decide about gangs.
SCHEDULERS = ("default-scheduler", "volcano")


def write_files(cluster):
    base, ca = cluster.base, cluster.ca
    ca.key("accounts")
    ca.make("apiserver", "kube-apiserver", hosts=("127.0.0.1", "localhost", "kubernetes", "10.96.0.1"))
    ca.make("front-proxy", "front-proxy-client")
    ca.make("kubelet-client", "kube-apiserver-kubelet-client", ["system:masters"])
    (base / "audit-policy.json").write_text(json.dumps({
        "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata"}],
    }))
    (base / "scheduler.json").write_text(json.dumps({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(cluster.kubeconfig("kube-scheduler")), "qps": 200, "burst": 400},
        "leaderElection": {"leaderElect": False},
        "podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 2,
        "profiles": [{"schedulerName": name} for name in SCHEDULERS],
    }))


def etcd(cluster):
    url, peer = (f"http://127.0.0.1:{cluster.ports[name]}" for name in ("etcd", "etcd-peer"))
    return Part("etcd", cluster.base, [
        cluster.parts_dir / "etcd", "--data-dir", cluster.base / "etcd", "--name", "kxfs",
        "--listen-client-urls", url, "--advertise-client-urls", url,
        "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
        "--initial-cluster", f"kxfs={peer}", "--unsafe-no-fsync", "--log-level", "warn",
    ])


def apiserver(cluster):
    base, pki = cluster.base, cluster.ca.dir
    return Part("apiserver", base, [
        cluster.parts_dir / "kube-apiserver", "--bind-address=127.0.0.1",
        f"--secure-port={cluster.ports['apiserver']}",
        # Must not be a loopback address. Nobody connects to it.
        "--advertise-address=192.0.2.1", "--endpoint-reconciler-type=none",
        f"--etcd-servers=http://127.0.0.1:{cluster.ports['etcd']}",
        f"--client-ca-file={pki}/ca.crt",
        f"--tls-cert-file={pki}/apiserver.crt", f"--tls-private-key-file={pki}/apiserver.key",
        f"--service-account-key-file={pki}/accounts.key",
        f"--service-account-signing-key-file={pki}/accounts.key",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-cluster-ip-range={SERVICE_RANGE}", "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        f"--token-auth-file={base}/tokens.csv",
        f"--kubelet-client-certificate={pki}/kubelet-client.crt",
        f"--kubelet-client-key={pki}/kubelet-client.key",
        f"--kubelet-certificate-authority={pki}/ca.crt",
        "--kubelet-preferred-address-types=Hostname", "--allow-privileged=true",
        # Servers behind this one, such as metrics-server, receive the user's name.
        f"--requestheader-client-ca-file={pki}/ca.crt", "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={pki}/front-proxy.crt", f"--proxy-client-key-file={pki}/front-proxy.key",
        f"--audit-policy-file={base}/audit-policy.json", f"--audit-log-path={cluster.audit_log}",
        "--audit-log-maxsize=1000", "--shutdown-delay-duration=0s",
    ])


def controller_manager(cluster):
    pki, kubeconfig = cluster.ca.dir, cluster.kubeconfig("kube-controller-manager")
    return Part("controller-manager", cluster.base, [
        cluster.parts_dir / "kube-controller-manager", "--bind-address=127.0.0.1",
        f"--secure-port={cluster.ports['controller-manager']}", f"--kubeconfig={kubeconfig}",
        f"--root-ca-file={pki}/ca.crt", f"--service-account-private-key-file={pki}/accounts.key",
        "--use-service-account-credentials", "--leader-elect=false",
        # otherwise a Job of a thousand pods takes minutes
        "--kube-api-qps=200", "--kube-api-burst=400",
        f"--cert-dir={cluster.base}/controller-manager",
    ])


def scheduler(cluster):
    return Part("scheduler", cluster.base, [
        cluster.parts_dir / "kube-scheduler", "--bind-address=127.0.0.1",
        f"--secure-port={cluster.ports['scheduler']}", f"--config={cluster.base}/scheduler.json",
        f"--cert-dir={cluster.base}/scheduler",
    ])


def metrics_server(cluster):
    """Return a metrics-server that reads the kubelet's metrics every 15 s, as in its own manifests."""
    pki, kubeconfig = cluster.ca.dir, cluster.kubeconfig("volcano")
    cluster.ca.make("metrics", "metrics", hosts=("localhost",))
    return Part("metrics-server", cluster.base, [
        cluster.parts_dir / "metrics-server", "--bind-address=127.0.0.1", f"--secure-port={cluster.ports['metrics']}",
        f"--tls-cert-file={pki}/metrics.crt", f"--tls-private-key-file={pki}/metrics.key",
        *(f"--{what}kubeconfig={kubeconfig}" for what in ("", "authentication-", "authorization-")),
        f"--kubelet-certificate-authority={pki}/ca.crt", "--kubelet-preferred-address-types=Hostname",
        "--kubelet-use-node-status-port", "--metric-resolution=15s",
    ])
