# SPDX-License-Identifier: MIT
"""Volcano's admission of jobs: its defaults, what it refuses, and its messages."""

import base64
import http.server
import json
import pathlib
import ssl
import threading

HOOK_NAMES = {"Mutating": "mutatejob.volcano.sh", "Validating": "validatejob.volcano.sh"}


def set_defaults(job):
    spec = job.setdefault("spec", {})
    spec.setdefault("queue", "default")
    spec.setdefault("schedulerName", "volcano")
    spec["maxRetry"] = spec.get("maxRetry") or 3
    for number, task in enumerate(spec.get("tasks") or ()):
        task.setdefault("name", f"default{number}")
        task.setdefault("replicas", 1)
        task.setdefault("minAvailable", task["replicas"])
        task["maxRetry"] = task.get("maxRetry") or 3
    spec["minAvailable"] = spec.get("minAvailable") or sum(
        task["minAvailable"] for task in spec.get("tasks") or ())
    return job


def refusal(job, queue_state):
    """Return why a job is refused, or "". QUEUE_STATE(name) returns a queue's state, or None if
    there is no such queue."""
    spec, name = job["spec"], job["metadata"]["name"]
    tasks = spec.get("tasks") or []
    if not tasks:
        return "No task specified in job spec"
    names = [task["name"] for task in tasks]
    for number, task in enumerate(tasks):
        if task["name"] in names[:number]:
            return f"duplicated task name {task['name']}, index: {number};"
        if task["minAvailable"] > task["replicas"]:
            return f"'minAvailable' is greater than 'replicas' in task: {task['name']}, job: {name};"
        pod = f"{name}-{task['name']}-{task['replicas'] - 1}"
        if len(pod) > 63:
            return (f'create pod with name {pod} validate failed [metadata.name: Invalid value: "{pod}": '
                    "must be no more than 63 characters];")
    if spec["minAvailable"] > sum(task["replicas"] for task in tasks):
        return "job 'minAvailable' should not be greater than total replicas in tasks;"
    state = queue_state(spec["queue"])
    if state is None:
        return f'unable to find job queue: queue.scheduling.volcano.sh "{spec["queue"]}" not found;'
    if state != "Open":
        return (f"can only submit job to queue with state `Open`, queue `{spec['queue']}` "
                f"status is `{state}`;")
    return ""


def review(path, request, queue_state):
    """Return the response to the request of an AdmissionReview."""
    answer = {"uid": request["uid"], "allowed": True}
    job = request["object"]
    job["metadata"].setdefault("name", job["metadata"].get("generateName", "") + "x" * 5)
    if path == "/mutate":
        patch = [{"op": "add", "path": "/spec", "value": set_defaults(job)["spec"]}]
        answer.update(patchType="JSONPatch", patch=base64.b64encode(json.dumps(patch).encode()).decode())
    else:
        why = refusal(set_defaults(job), queue_state)
        if why:
            answer.update(allowed=False, status={"message": why, "code": 400})
    return answer


def serve(port, certificate, key, queue_state):
    """Serve on a thread, with TLS, on the loopback interface."""
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body["response"] = review(self.path.partition("?")[0], body.pop("request"), queue_state)
            data = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    # Each connection's thread does its own handshake, so that a slow client does not delay others.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def configurations(port, ca):
    """Return the objects that make the API server call this webhook."""
    bundle = base64.b64encode(pathlib.Path(ca).read_bytes()).decode()
    for kind, name in HOOK_NAMES.items():
        path = "mutate" if kind == "Mutating" else "validate"
        yield {
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": f"{kind}WebhookConfiguration",
            "metadata": {"name": f"volcano-jobs-{path}"},
            "webhooks": [{
                "name": name, "admissionReviewVersions": ["v1"], "sideEffects": "NoneOnDryRun",
                "failurePolicy": "Fail", "timeoutSeconds": 30, "matchPolicy": "Equivalent",
                "clientConfig": {"url": f"https://127.0.0.1:{port}/{path}", "caBundle": bundle},
                "rules": [{"apiGroups": ["batch.volcano.sh"], "apiVersions": ["v1alpha1"],
                           "operations": ["CREATE"], "resources": ["jobs"]}],
            }],
        }
