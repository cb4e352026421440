# SPDX-License-Identifier: MIT
"""The run options: their descriptions for TorchX, and those that are passed to the mount."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from torchx.specs import CfgVal, InvalidRunConfigException, runopts
from torchx.util.types import to_dict

# Options of the mount's jobs, which the mount checks: kxfs(1), Run options.
OF_JOBS: dict[str, tuple[type, str]] = {
    "queue": (str, "(Volcano, AppWrapper, JobSet, Job) queue that the job waits in"),
    "service_account": (str, "(cluster) service account of the pods"),
    "priority_class": (str, "(Volcano, JobSet, Job) priority class of the job"),
    "reserved_millicpu": (int, "(Volcano) thousandths of a CPU that a role asks for and does not request"),
    "reserved_memmb": (int, "(Volcano) memory in MB that a role asks for and does not request"),
    "efa_device_count": (int, "(Volcano) number of devices vpc.amazonaws.com/efa, whatever the resource says"),
    "image_secret": (str, "(MCAD, AppWrapper, JobSet, Job) secret to pull images with"),
    "coscheduler_name": (str, "(MCAD, AppWrapper) scheduler that places the pods of a role together"),
    "priority_class_name": (str, "(MCAD, AppWrapper) priority class of the pods"),
    "network": (str, "(MCAD, AppWrapper) additional network of the pods"),
    "priority": (int, "(MCAD) priority of the job in its queue"),
    "time_limit": (str, "how long an attempt of a replica may run, such as 90s, 30m, 4h or 2d"),
    "ttl": (str, "(Volcano, JobSet, Job, local:) how long after its end the job is removed by itself, such as 1d"),
    "parallelism": (int, "(Job) how many replicas run at the same time; the rest wait"),
    "no_annotations": (bool, "(cluster) leave out the annotations and the label of kxfs"),
    "cwd": (str, "(local:) directory in which the job runs, absolute; default: the workspace, else the current directory"),
}
# Whether a local job gets the environment of the user who runs it.
INHERIT = "inherit_env"
# The kind of the job. A mount of all kinds of a cluster can't know it.
SCHEDULER = "scheduler"


class RunOpts(runopts):
    """Refuses unknown options. TorchX 0.7.0 would silently drop them; later versions refuse them
    with alternative spellings."""

    def cfg_from_str(self, cfg_str: str) -> dict[str, CfgVal]:
        cfg = super().cfg_from_str(cfg_str)
        if not hasattr(runopts, "canonical_key"):
            refuse_unknown(self, to_dict(cfg_str))
        return cfg


def refuse_unknown(opts: runopts, names: Iterable[str]) -> None:
    for name in names:
        if opts.get(name) is None:
            known = ", ".join(sorted(known for known, _ in opts))
            raise InvalidRunConfigException(f"Unknown run option `{name}`; those of kxfs are {known}", name, {})


def run_opts() -> runopts:
    """Return all options except image_repo and quiet, which TorchX's Docker workspaces add."""
    opts = RunOpts()
    opts.add("mount", type_=str,
             help="directory where kxfs is mounted; default: $KXFS_MOUNT, else the only mount of this user")
    opts.add(INHERIT, type_=bool, default=True,
             help="(local:) the job has the environment of who runs it, with the directory of the job at the end of PATH")
    opts.add(SCHEDULER, type_=str,
             help="what the job becomes: volcano, mcad, appwrapper, jobset, job or local; default: what the mount makes of it")
    for name, (kind, help_text) in OF_JOBS.items():
        opts.add(name, type_=kind, help=help_text)
    return opts


def scheduler_args(cfg: Mapping[str, CfgVal]) -> dict[str, CfgVal]:
    """Return the given options for the document."""
    return {name: cfg[name] for name in OF_JOBS if cfg.get(name) is not None}
