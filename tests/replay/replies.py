# SPDX-License-Identifier: MIT
"""Replies: a status, headers and a body. Status objects have the texts of the real API server."""

import json
import pathlib

DATA = pathlib.Path(__file__).resolve().parent / "data"


class Reply(Exception):
    """A reply to a request. A handler raises it to end the handling of the request."""

    def __init__(self, code, body=b"", content_type="application/json", headers=()):
        super().__init__(code)
        self.code = code
        self.body = body
        self.headers = {"Content-Type": content_type, **dict(headers)}

    @property
    def message(self):
        try:
            return json.loads(self.body).get("message", "")
        except ValueError:
            return self.body.decode(errors="replace")


def json_reply(tree, code=200):
    return Reply(code, json.dumps(tree, separators=(",", ":"), ensure_ascii=False).encode())


def status_tree(code, reason, message, details=None):
    tree = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "details": details, "code": code}
    return {key: value for key, value in tree.items() if value not in (None, "")}


def status(code, reason, message, details=None, headers=()):
    reply = json_reply(status_tree(code, reason, message, details), code)
    reply.headers.update(headers)
    return reply


def text_of(name):
    """Return the text of the recorded reply NAME of a real API server (data/replies.jsonl)."""
    rows = map(json.loads, (DATA / "replies.jsonl").read_text().splitlines())
    return next(row["text"] for row in rows if row["name"] == name)


def recorded(name):
    """Return a recorded reply of a real API server. NAME begins with its HTTP status."""
    kind = "text/plain; charset=utf-8" if name.endswith(".txt") else "application/json"
    return Reply(int(name[:3]), text_of(name).encode(), kind)


def recorded_events(name):
    """Return the lines of the recorded stream NAME."""
    return text_of(name).encode().strip().split(b"\n")


def _details(resource, name="", **more):
    details = {"name": name, "group": resource.group, "kind": resource.plural, **more}
    return {key: value for key, value in details.items() if value}


def not_served():
    return recorded("404-no-such-resource.txt")


def not_found(resource, name):
    return status(404, "NotFound", f'{resource.qualified} "{name}" not found',
                  _details(resource, name))


def unauthorized():
    return recorded("401-bad-token.json")


def forbidden(user, verb, resource, namespace, name="", subresource=""):
    what = f"{resource.plural}/{subresource}" if subresource else resource.plural
    quoted = f' "{name}"' if name else ""
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    return status(403, "Forbidden",
                  f'{resource.qualified}{quoted} is forbidden: User "{user}" cannot {verb} resource '
                  f'"{what}" in API group "{resource.group}" {where}', _details(resource, name))


def bad_request(message):
    return status(400, "BadRequest", message)


def denied(message):
    """Return a refusal by Volcano's webhook. Its Status has no reason."""
    return json_reply(status_tree(400, "", f'admission webhook "validatejob.volcano.sh" denied the '
                                           f"request: {message}"), 400)


def invalid(resource, name, *causes):
    """Return a 422. CAUSES are (field, reason, message) of each error."""
    text = [f"{field}: {message}" for field, _, message in causes]
    whole = text[0] if len(text) == 1 else "[" + ", ".join(text) + "]"
    return status(422, "Invalid", f'{resource.kind}.{resource.group} "{name}" is invalid: {whole}',
                  _details(resource, name, causes=[
                      {"reason": reason, "message": message, "field": field}
                      for field, reason, message in causes]))


def exists(resource, name):
    return status(409, "AlreadyExists", f'{resource.qualified} "{name}" already exists',
                  _details(resource, name))


def wrong_uid(resource, name, wanted, found):
    return status(409, "Conflict",
                  f'Operation cannot be fulfilled on {resource.qualified} "{name}": the UID in the '
                  f"precondition ({wanted}) does not match the UID in record ({found}). The object "
                  "might have been deleted and then recreated", _details(resource, name))


def expired(wanted, oldest):
    return status(410, "Expired", f"too old resource version: {wanted} ({oldest})")


def continue_expired():
    return status(410, "Expired", "The provided continue parameter is too old to display a "
                  "consistent list result. You can start a new list without the continue parameter.")


def too_large_version(wanted, current):
    return status(504, "Timeout", f"Timeout: Too large resource version: {wanted}, current: {current}",
                  {"causes": [{"reason": "ResourceVersionTooLarge",
                               "message": "Too large resource version"}], "retryAfterSeconds": 1})


def too_many(seconds=1):
    """Return a 429 of API priority and fairness."""
    return Reply(429, b"Too many requests, please try again later.\n", "text/plain; charset=utf-8",
                 {"Retry-After": str(seconds), "X-Content-Type-Options": "nosniff"})


def unavailable(headers=()):
    return status(503, "ServiceUnavailable", "the server is currently unable to handle the request",
                  headers=headers)


def upstream_lost():
    """Return the reply of a proxy (Envoy) that has lost the connection to the server."""
    return Reply(503, b"upstream connect error or disconnect/reset before headers. reset reason: connection termination",
                 "text/plain")


def login_page():
    """Return the reply of a proxy whose login session has expired."""
    return Reply(200, b"<!DOCTYPE html><html><head><title>Sign in</title></head><body>Please log in</body></html>\n",
                 "text/html")


def internal(message="Internal error occurred: etcdserver: leader changed"):
    return status(500, "InternalError", message)


def too_large_for_etcd():
    return json_reply(status_tree(500, "", "etcdserver: request is too large"), 500)


def too_large_to_send(size):
    return json_reply(status_tree(
        500, "", "rpc error: code = ResourceExhausted desc = trying to send message larger than max "
        f"({size} vs. 2097152)"), 500)


def body_too_large():
    return Reply(413, b"", "text/plain; charset=utf-8")
