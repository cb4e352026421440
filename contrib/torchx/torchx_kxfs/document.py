# SPDX-License-Identifier: MIT
"""An AppDef as the document that a mount reads (appdef(5)), and a role from such a document."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from torchx.specs import (
    AppDef,
    BindMount,
    CfgVal,
    DeviceMount,
    Resource,
    RetryPolicy,
    Role,
    VolumeMount,
    named_resources,
    parse_mounts,
)

from torchx_kxfs import options
from torchx_kxfs.mount import KxfsError, Mount

# The key of a role's metadata with the directory of its workspace, between its build and the document.
CWD = "kxfs.cwd"
# Variables of the shell itself, which would be wrong in a job.
OF_SHELLS = ("PWD", "OLDPWD", "SHLVL", "_")


def document(app: AppDef, cfg: Mapping[str, CfgVal], mount: Mount) -> dict[str, Any]:
    """Return the AppDef with the run options. If its workspaces name a directory, set it in CFG
    too, because TorchX shows CFG."""
    cwd = _take_directory(app, cfg, mount)
    ret = dataclasses.asdict(app)
    inherited = _environment(mount, cwd) if mount.is_local and cfg.get(options.INHERIT) else {}
    for role, source in zip(ret["roles"], app.roles):
        role.pop("overrides", None)  # asdict has already applied them
        role["env"] = {**inherited, **role["env"]}
        role["metadata"] = _overlays(source, role["metadata"])
    args = options.scheduler_args(cfg)
    if cwd:
        args["cwd"] = cwd
    if cfg.get(options.SCHEDULER):
        ret["scheduler"] = cfg[options.SCHEDULER]
    return {**ret, "scheduler_args": args}


def _take_directory(app: AppDef, cfg: Mapping[str, CfgVal], mount: Mount) -> str | None:
    """Return the directory where a local job runs: the given one, else its workspace, else the
    current one."""
    found = {role.metadata.pop(CWD) for role in app.roles if CWD in role.metadata}
    if not mount.is_local:
        return None
    if cfg.get("cwd"):
        return str(cfg["cwd"])
    if len(found) > 1:
        raise KxfsError(f"a local job runs in one directory, and its roles have several workspaces: "
                        f"{', '.join(sorted(found))}")
    cwd: str = found.pop() if found else os.getcwd()
    if isinstance(cfg, dict):
        cfg["cwd"] = cwd
    return cwd


def _environment(mount: Mount, cwd: str | None) -> dict[str, str]:
    """Return our variables that differ from those of kxfs. (All jobs of kxfs have kxfs's
    variables.) The job's directory is the last one in PATH, as with TorchX's local jobs. Names and
    values that a document can't contain are omitted."""
    there = mount.environment()
    ours = {**os.environ, "PATH": f"{os.environ.get('PATH', os.defpath)}:{cwd}"}
    return {name: value.replace("$", "$$") for name, value in ours.items()
            if value != there.get(name) and name not in OF_SHELLS and name.isascii() and name.isprintable()
            and _is_text(value)}


def _is_text(value: str) -> bool:
    with contextlib.suppress(UnicodeEncodeError):
        value.encode("utf-8")
        return True
    return False


def _overlays(role: Role, metadata: dict[str, Any]) -> dict[str, Any]:
    """Return METADATA of ROLE, with an overlay read if it is a file name, and a tuple converted to
    a replacing key."""
    if isinstance(metadata.get("kubernetes"), str):
        with contextlib.suppress(ImportError):  # TorchX 0.7.0 reads no files
            from torchx.specs.overlays import get_overlay
            metadata = {**metadata, "kubernetes": {"V1Pod": get_overlay(role, "kubernetes", "V1Pod")}}
    if isinstance(metadata.get("kubernetes"), dict):
        metadata = {**metadata, "kubernetes": _replacing(metadata["kubernetes"])}
    return metadata


def _replacing(overlay: dict[str, Any]) -> dict[str, Any]:
    """Convert tuples, which JSON does not have, to keys that mean "replace"."""
    ret: dict[str, Any] = {}
    for key, value in overlay.items():
        if isinstance(value, tuple) and not key.startswith("__"):
            ret[f"__put__:{key}"] = list(value)
        else:
            ret[key] = _replacing(value) if isinstance(value, dict) else value
    return ret


# --- reading ---


def role_of(status: dict[str, Any], written: dict[str, Any]) -> Role:
    """Return a role as the mount knows it: STATUS, and its part of the document (WRITTEN), if
    known. Numbers may be text."""
    role = Role(name=status["name"], image=_text(written, "image", ""), num_replicas=status["desired"])
    role.entrypoint = _text(written, "entrypoint", role.entrypoint)
    role.args = [str(arg) for arg in _typed(written, "args", list)]
    role.env = {name: str(value) for name, value in _typed(written, "env", dict).items()}
    role.port_map = {name: int(port) for name, port in _typed(written, "port_map", dict).items()}
    role.metadata = _typed(written, "metadata", dict)
    role.max_retries = int(written.get("max_retries") or 0)
    role.retry_policy = RetryPolicy.__members__.get(_text(written, "retry_policy", ""), role.retry_policy)
    if written.get("min_replicas") not in (None, "", "null", "Null", "NULL", "~"):
        role.min_replicas = int(written["min_replicas"])
    mounts = written.get("mounts")
    role.mounts = _mounts([mounts] if isinstance(mounts, str) else _typed(written, "mounts", list))
    role.resource = _resource(written.get("resource")) or role.resource
    return role


def _text(written: dict[str, Any], name: str, default: str) -> str:
    value = written.get(name)
    return default if value is None else str(value)


def _typed(written: dict[str, Any], name: str, kind: type) -> Any:
    value = written.get(name)
    return value if isinstance(value, kind) else kind()


def _mounts(written: list[Any]) -> list[BindMount | VolumeMount | DeviceMount]:
    """Parse mounts, each in one of the two forms of appdef(5): text, or a map, whose keys may imply `type`."""
    ret: list[BindMount | VolumeMount | DeviceMount] = []
    for item in written:
        if isinstance(item, str):
            ret += parse_mounts(item.split(","))
            continue
        read_only = str(item.get("read_only", False)).lower() in ("true", "yes", "on")
        if "src" in item:
            ret.append(VolumeMount(item["src"], item["dst_path"], read_only))
        elif item.get("type") == "device" or "permissions" in item:
            ret.append(DeviceMount(item["src_path"], item.get("dst_path") or item["src_path"], item.get("permissions", "rwm")))
        else:
            ret.append(BindMount(item["src_path"], item["dst_path"], read_only))
    return ret


def _resource(written: Any) -> Resource | None:
    if isinstance(written, str):
        with contextlib.suppress(KeyError):
            return named_resources[written]
    if not isinstance(written, dict):
        return None
    devices = {name: int(n) for name, n in _typed(written, "devices", dict).items()}
    return Resource(cpu=int(float(written.get("cpu", -1))), gpu=int(written.get("gpu", 0)),
                    memMB=int(float(written.get("memMB", -1))), capabilities=_typed(written, "capabilities", dict), devices=devices)
