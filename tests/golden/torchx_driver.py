# SPDX-License-Identifier: MIT
"""Runs in a Python that has TorchX 0.7.0 or later. It reads requests as lines of JSON, and answers
each with one line, {error} if TorchX refuses.

{kind, app, options} with an AppDef in our form returns {dump, job}: TorchX's own form of the
AppDef, and the object that it would send. {kind, component, args, options} returns the same for one
of TorchX's components. A later version also returns dry_run, the output of `torchx run --dryrun
--json`. The suffix of names is fixed."""

import dataclasses
import json
import os
import sys
import warnings

from torchx import specs
from torchx.runner import get_runner
from torchx.schedulers import kubernetes_scheduler
from torchx.specs import api

try:
    from torchx.schedulers import kubernetes_mcad_scheduler
except ImportError:  # later versions do not have it
    kubernetes_mcad_scheduler = None
try:
    from torchx.cli.cmd_run import _dryrun_info_json
except ImportError:  # 0.7.0 does not have it
    _dryrun_info_json = None

PINNED = "fxtnr4nd5mcbzq"
MOUNTS = {"bind": api.BindMount, "volume": api.VolumeMount, "device": api.DeviceMount}
MODULES = {"volcano": kubernetes_scheduler, "mcad": kubernetes_mcad_scheduler}
SCHEDULERS = {"volcano": "kubernetes", "mcad": "kubernetes_mcad"}


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


def answer_app(question):
    module = MODULES[question["kind"]]
    app = dict(question["app"])
    app["roles"] = [make_role(role) for role in app["roles"]]
    app = api.AppDef(**app)
    dump = dataclasses.asdict(app)
    info = module.create_scheduler("torchx").submit_dryrun(app, question["options"])
    return {"dump": dump, "job": module.sanitize_for_serialization(info.request.resource)}


def answer_component(question):
    scheduler = SCHEDULERS[question["kind"]]
    with get_runner() as runner:
        info = runner.dryrun_component(question["component"], question["args"], scheduler, question["options"])
    ret = {"dump": dataclasses.asdict(getattr(info, "app", None) or info._app),  # pylint: disable=protected-access
           "job": MODULES[question["kind"]].sanitize_for_serialization(info.request.resource)}
    if _dryrun_info_json:
        ret["dry_run"] = json.loads(json.dumps(_dryrun_info_json(info, scheduler), default=str))
    return ret


def main():
    kubernetes_scheduler.make_unique = lambda name: f"{name}-{PINNED}"
    if kubernetes_mcad_scheduler:
        kubernetes_mcad_scheduler.make_unique = lambda name, size: f"{name}-{PINNED[:size]}"
    os.environ["TORCHX_INTERNAL_SESSION_ID"] = "a-session"
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        question = json.loads(line)
        try:
            reply = answer_component(question) if "component" in question else answer_app(question)
        except Exception as error:  # pylint: disable=broad-exception-caught
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), flush=True)


main()
