# SPDX-License-Identifier: MIT
"""Runs under a Python that has TorchX 0.7.0: reads lines of JSON {kind, app, options} and answers each
with {job} or {error}. The suffix of names is pinned."""

import json
import sys
import warnings

from torchx.schedulers import kubernetes_mcad_scheduler, kubernetes_scheduler
from torchx import specs
from torchx.specs import api

PINNED = "fxtnr4nd5mcbzq"
MOUNTS = {"bind": api.BindMount, "volume": api.VolumeMount, "device": api.DeviceMount}


def make_role(role):
    role = dict(role)
    if "resource" in role:
        resource = role["resource"]
        role["resource"] = specs.named_resources[resource] if isinstance(resource, str) else api.Resource(**resource)
    role["mounts"] = [mount for item in role.pop("mounts", []) for mount in make_mounts(item)]
    if "retry_policy" in role:
        role["retry_policy"] = api.RetryPolicy(role["retry_policy"])
    return api.Role(**role)


def make_mounts(item):
    if isinstance(item, str):
        return specs.parse_mounts(item.split(","))
    item = dict(item)
    return [MOUNTS[item.pop("type")](**item)]


def answer(question):
    module = {"volcano": kubernetes_scheduler, "mcad": kubernetes_mcad_scheduler}[question["kind"]]
    app = dict(question["app"])
    app["roles"] = [make_role(role) for role in app["roles"]]
    scheduler = module.create_scheduler("torchx")
    info = scheduler.submit_dryrun(api.AppDef(**app), question["options"])
    return module.sanitize_for_serialization(info.request.resource)


def main():
    kubernetes_scheduler.make_unique = lambda name: f"{name}-{PINNED}"
    kubernetes_mcad_scheduler.make_unique = lambda name, size: f"{name}-{PINNED[:size]}"
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        try:
            reply = {"job": answer(json.loads(line))}
        except Exception as error:  # pylint: disable=broad-exception-caught
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), flush=True)


main()
