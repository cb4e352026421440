# SPDX-License-Identifier: MIT
"""What the API server does with an object before it stores it: decoding, the schema of Volcano's jobs (strict or
pruning), Volcano's webhook with its defaults, and the limit of a body's size."""

import functools
import json
import pathlib
import random
import re
import string

import replies
import store as st
import yaml

SCHEMA = pathlib.Path(__file__).resolve().parent / "data/crds/volcano.yaml"
MAX_BODY = 3 * 1024 * 1024
MAX_ANNOTATIONS = 262144


def decode(body):
    """Return the object in a request's body."""
    if len(body) > MAX_BODY:
        raise replies.body_too_large()
    try:
        tree = json.loads(body)
    except ValueError as e:
        raise replies.bad_request(f"the object provided is unrecognized (must be of type json): {e}") from None
    if not isinstance(tree, dict):
        raise replies.bad_request("the object provided is not an object")
    return tree


def check(req, tree, queues):
    """Return TREE as the server would store it. Raise a Reply to refuse it."""
    resource = req.resource
    if (tree.get("apiVersion"), tree.get("kind")) != (resource.api_version, resource.kind):
        raise replies.bad_request(
            f"the API version in the data ({tree.get('apiVersion')}) does not match the expected "
            f"API version ({resource.api_version})")
    meta = tree.setdefault("metadata", {})
    if resource is st.JOBS:
        check_schema(tree, strict=req.query.get("fieldValidation") == "Strict")
    if "name" not in meta and "generateName" in meta:
        meta["name"] = meta["generateName"] + "".join(random.choices(string.ascii_lowercase, k=5))
    if meta.get("resourceVersion"):
        raise replies.bad_request("resourceVersion should not be set on objects to be created")
    meta["namespace"] = meta.get("namespace") or req.namespace
    if meta["namespace"] != req.namespace:
        raise replies.bad_request("the namespace of the provided object does not match the namespace "
                                  "sent on the request")
    check_metadata(resource, meta)
    if resource is st.JOBS:
        webhook(tree, queues)
    for key in ("uid", "creationTimestamp", "generation"):
        meta.pop(key, None)
    return tree


def check_metadata(resource, meta):
    name = meta.get("name", "")
    if not name:
        raise replies.invalid(resource, "", ("metadata.name", "FieldValueRequired",
                                             "Required value: name or generateName is required"))
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", name) or len(name) > 253:
        raise replies.invalid(resource, name, (
            "metadata.name", "FieldValueInvalid", f'Invalid value: "{name}": a lowercase RFC 1123 '
            "subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
            "start and end with an alphanumeric character"))
    size = sum(len(k.encode()) + len(v.encode()) for k, v in (meta.get("annotations") or {}).items())
    if size > MAX_ANNOTATIONS:
        raise replies.invalid(resource, name, (
            "metadata.annotations", "FieldValueTooLong",
            f"Too long: may not be more than {MAX_ANNOTATIONS} bytes"))


# --- the schema ---


@functools.lru_cache(maxsize=1)
def schema():
    with SCHEMA.open() as f:
        jobs = next(one for one in yaml.load_all(f, Loader=yaml.CSafeLoader) if one["metadata"]["name"] == "jobs.batch.volcano.sh")
    return jobs["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float)}


def check_schema(tree, strict):
    """Refuse or remove unknown fields of TREE, and refuse wrong types."""
    unknown, wrong = [], []
    spec = {key: value for key, value in tree.items() if key != "metadata"}
    walk(spec, schema(), "", unknown, wrong)
    for key in set(tree) - set(spec) - {"metadata"}:
        del tree[key]
    if unknown and strict:
        listed = ", ".join(f'unknown field "{path}"' for path in unknown)
        raise replies.bad_request('Job in version "v1alpha1" cannot be handled as a Job: strict '
                                  f"decoding error: {listed}")
    if wrong:
        raise replies.invalid(st.JOBS, tree["metadata"].get("name", ""), *wrong)


def walk(value, rule, path, unknown, wrong):
    if rule.get("x-kubernetes-int-or-string"):
        if not isinstance(value, (int, str)):
            wrong.append((path, "FieldValueTypeInvalid", f'Invalid value: "{type(value).__name__}"'))
        return
    wanted = rule.get("type")
    if wanted and not isinstance(value, TYPES[wanted]) or (wanted in ("integer", "number") and value is True):
        names = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer",
                 float: "number", type(None): "null"}
        got = names[type(value)]
        wrong.append((path, "FieldValueTypeInvalid",
                      f'Invalid value: "{got}": {path} in body must be of type {wanted}: "{got}"'))
    elif wanted == "array":
        for i, item in enumerate(value):
            walk(item, rule.get("items", {}), f"{path}[{i}]", unknown, wrong)
    elif wanted == "object":
        walk_object(value, rule, path, unknown, wrong)


def walk_object(value, rule, path, unknown, wrong):
    fields = rule.get("properties", {})
    free = rule.get("additionalProperties")
    for key in list(value):
        where = f"{path}.{key}" if path else key
        if key in fields:
            walk(value[key], fields[key], where, unknown, wrong)
        elif isinstance(free, dict):
            walk(value[key], free, where, unknown, wrong)
        elif fields and not free and not rule.get("x-kubernetes-preserve-unknown-fields"):
            unknown.append(where)
            del value[key]


# --- Volcano's webhook ---


def webhook(tree, queues):
    """Set defaults in TREE, or refuse it, as the recordings and the recorded replies show."""
    spec = tree.setdefault("spec", {})
    spec.setdefault("queue", "default")
    spec.setdefault("schedulerName", "volcano")
    if not spec.get("maxRetry"):
        spec["maxRetry"] = 3
    tasks = spec.get("tasks") or []
    for number, task in enumerate(tasks):
        task.setdefault("name", f"default{number}")
        task.setdefault("replicas", 1)
        task.setdefault("minAvailable", task["replicas"])
        if not task.get("maxRetry"):
            task["maxRetry"] = 3
    if not spec.get("minAvailable"):
        spec["minAvailable"] = sum(task["minAvailable"] for task in tasks)
    name = tree["metadata"]["name"]
    if not tasks:
        raise replies.denied("No task specified in job spec;")
    seen = set()
    for number, task in enumerate(tasks):
        if task["name"] in seen:
            raise replies.denied(f"duplicated task name {task['name']}, index: {number};")
        seen.add(task["name"])
        pod = f"{name}-{task['name']}-{task['replicas'] - 1}"
        if len(pod) > 63:
            raise replies.denied(f"create pod with name {pod} validate failed [metadata.name: Invalid "
                                 f'value: "{pod}": must be no more than 63 characters];')
    queue = spec["queue"]
    if queue not in queues:
        raise replies.denied(f'unable to find job queue: queue.scheduling.volcano.sh "{queue}" not found;')
    if queues[queue] != "Open":
        raise replies.denied("can only submit job to queue with state `Open`, "
                             f"queue `{queue}` status is `{queues[queue]}`;")
