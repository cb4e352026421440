# SPDX-License-Identifier: MIT
"""Kubeconfig files that point at an ApiServer, with every kind of credential."""

import base64
import json


def config(server, user=None, namespace="test", context="test", cluster=None, url=None):
    """Return a kubeconfig as a tree. USER has the fields of its user, CLUSTER more fields of its cluster."""
    where = {"server": url or server.url}
    if server.pki:
        where["certificate-authority-data"] = base64.b64encode(server.pki.ca.read_bytes()).decode()
    where.update(cluster or {})
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": context,
        "clusters": [{"name": f"{context}-cluster",
                      "cluster": {key: value for key, value in where.items() if value is not None}}],
        "users": [{"name": f"{context}-user", "user": token() if user is None else user}],
        "contexts": [{"name": context, "context": {
            "cluster": f"{context}-cluster", "user": f"{context}-user", "namespace": namespace}}],
    }


def write(path, tree):
    """Write TREE to PATH as JSON, which is also YAML. Return PATH."""
    path.write_text(json.dumps(tree, indent=1))
    path.chmod(0o600)
    return path


# --- users ---


def token(text="test-token"):
    return {"token": text}


def token_file(path):
    return {"tokenFile": str(path)}


def password(user, secret):
    return {"username": user, "password": secret}


def certificate(paths, inline=False):
    """Return the user fields for a client certificate. PATHS is a result of Pki.issue."""
    cert, key = paths
    if inline:
        return {"client-certificate-data": base64.b64encode(cert.read_bytes()).decode(),
                "client-key-data": base64.b64encode(key.read_bytes()).decode()}
    return {"client-certificate": str(cert), "client-key": str(key)}


def plugin(command, *args, env=None, version="v1", mode="IfAvailable"):
    """Return the user fields for a credential plugin that runs COMMAND ARGS."""
    return {"exec": {"apiVersion": f"client.authentication.k8s.io/{version}", "command": str(command),
                     "args": list(args), "interactiveMode": mode,
                     "env": [{"name": key, "value": value} for key, value in (env or {}).items()]}}


def plugin_reply(version="v1", **status):
    """Return the output of a credential plugin. STATUS: token=, clientCertificateData=, clientKeyData=,
    expirationTimestamp=."""
    return json.dumps({"apiVersion": f"client.authentication.k8s.io/{version}",
                       "kind": "ExecCredential", "status": status})
