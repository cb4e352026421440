# SPDX-License-Identifier: MIT
"""A small client of the Kubernetes API, for the test controllers and for requests of the tests."""

import base64
import contextlib
import http.client
import json
import socket
import ssl
import subprocess
import tempfile
import threading
import urllib.parse

GROUPS = {
    "pods": "/api/v1", "pods/log": "/api/v1", "events": "/api/v1", "services": "/api/v1",
    "configmaps": "/api/v1", "namespaces": "/api/v1", "nodes": "/api/v1", "secrets": "/api/v1",
    "serviceaccounts": "/api/v1", "resourcequotas": "/api/v1",
    "jobs": "/apis/batch.volcano.sh/v1alpha1",
    "commands": "/apis/bus.volcano.sh/v1alpha1",
    "podgroups": "/apis/scheduling.volcano.sh/v1beta1",
    "queues": "/apis/scheduling.volcano.sh/v1beta1",
    "appwrappers": "/apis/workload.codeflare.dev/v1beta2",
    "jobsets": "/apis/jobset.x-k8s.io/v1alpha2",
    "jobs.batch": "/apis/batch/v1",
    "cronjobs": "/apis/batch/v1",
}


def path_of(resource, namespace=None, name=None, sub=None):
    """Return a path such as /apis/batch.volcano.sh/v1alpha1/namespaces/NS/jobs/NAME/status."""
    path = GROUPS[resource]
    if namespace:
        path += f"/namespaces/{namespace}"
    plural = resource.partition(".")[0]
    return path + f"/{plural}" + (f"/{name}" if name else "") + (f"/{sub}" if sub else "")


class Refused(Exception):
    """The server's reply is an error: `code`, and `status` as it was sent."""

    def __init__(self, code, body):
        super().__init__(f"{code}: {body[:2000]}")
        self.code = code
        self.body = body
        try:
            self.status = json.loads(body)
        except ValueError:
            self.status = {}

    @property
    def message(self):
        return self.status.get("message", self.body)


class Client:
    """Connections to one server as one user. Threads may share a client."""

    def __init__(self, server, context, token=None):
        url = urllib.parse.urlsplit(server)
        self.address = (url.hostname, url.port or 443)
        self.context = context
        self.headers = {"Accept": "application/json", "User-Agent": "kxfs-tests"}
        if token:
            self.headers["Authorization"] = f"Bearer {token}"
        self.local = threading.local()

    def connect(self, timeout):
        return http.client.HTTPSConnection(*self.address, context=self.context, timeout=timeout)

    def send(self, method, path, body=None, kind="application/json"):
        """Return the body of the reply. If the server has closed a kept connection, connect again.
        Raise OSError if there is no reply or it is incomplete."""
        data = None if body is None else json.dumps(body).encode()
        headers = {**self.headers, **({"Content-Type": kind} if data is not None else {})}
        for again in (True, False):
            kept = getattr(self.local, "connection", None)
            connection = kept or self.connect(60)
            self.local.connection = None
            try:
                connection.request(method, path, data, headers)
                answer = connection.getresponse()
                text = answer.read().decode(errors="replace")
            except (OSError, http.client.HTTPException) as e:
                connection.close()
                if not (kept and again):
                    raise e if isinstance(e, OSError) else ConnectionError(f"{type(e).__name__}: {e}") from e
                continue
            self.local.connection = connection
            if answer.status >= 300:
                raise Refused(answer.status, text)
            return text
        raise AssertionError("not reached")

    def call(self, method, path, body=None, kind="application/json"):
        return json.loads(self.send(method, path, body, kind))

    def get(self, path):
        return self.call("GET", path)

    def items(self, path):
        return self.get(path)["items"]

    def post(self, path, body):
        return self.call("POST", path, body)

    def put(self, path, body):
        return self.call("PUT", path, body)

    def merge(self, path, body):
        return self.call("PATCH", path, body, "application/merge-patch+json")

    def delete(self, path, body=None):
        """Delete an object. A missing object does not count as an error."""
        with contextlib.suppress(KeyError):
            try:
                self.call("DELETE", path, body or {})
            except Refused as e:
                if e.code != 404:
                    raise

    def watch(self, path, version, timeout=60):
        """Yield the events of a watch until it ends. `path` may have parameters."""
        connection = self.connect(timeout + 10)
        try:
            mark = "&" if "?" in path else "?"
            connection.request("GET", f"{path}{mark}watch=1&resourceVersion={version}"
                               f"&allowWatchBookmarks=true&timeoutSeconds={timeout}",
                               headers=self.headers)
            answer = connection.getresponse()
            if answer.status != 200:
                raise Refused(answer.status, answer.read().decode(errors="replace"))
            for line in answer:
                yield json.loads(line)
        except (http.client.HTTPException, socket.timeout):
            return
        finally:
            connection.close()


def tls_context(ca, certificate=None, key=None):
    context = ssl.create_default_context(cafile=ca)
    # The tests' certificates lack extensions that newer versions of OpenSSL require.
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    if certificate:
        context.load_cert_chain(certificate, key)
    return context


def from_kubeconfig(kubectl, path=None):
    """Return a client that uses this kubeconfig as kubectl does, or kubectl's default one if PATH
    is None."""
    command = [kubectl, "config", "view", "--raw", "--minify", "--flatten", "-o", "json"]
    config = json.loads(subprocess.run(command + ([f"--kubeconfig={path}"] if path else []),
                                       check=True, capture_output=True, text=True).stdout)
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    with tempfile.TemporaryDirectory() as scratch:
        files = {}
        for name, where in (("certificate-authority-data", cluster),
                            ("client-certificate-data", user), ("client-key-data", user)):
            if name in where:
                files[name] = f"{scratch}/{name}"
                with open(files[name], "wb") as file:
                    file.write(base64.b64decode(where[name]))
        context = tls_context(files.get("certificate-authority-data"),
                              files.get("client-certificate-data"), files.get("client-key-data"))
    return Client(cluster["server"], context, user.get("token"))
