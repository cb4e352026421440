# SPDX-License-Identifier: MIT
"""One job of a mount: its status, its end, its replicas. A job is in jobs/, later perhaps in history/, and is read
in the same way in both."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
from collections.abc import Iterable
from typing import Any

import yaml

from torchx_kxfs.mount import ENDED, KxfsError, Mount


class _Loader(yaml.SafeLoader):  # type: ignore[misc]  # the types of PyYAML are not installed
    """Expands merge keys. Scalars are text, as kxfs reads them."""

    yaml_implicit_resolvers = {"<": yaml.SafeLoader.yaml_implicit_resolvers["<"]}
    yaml_constructors = {
        "tag:yaml.org,2002:map": yaml.SafeLoader.construct_yaml_map,
        "tag:yaml.org,2002:seq": yaml.SafeLoader.construct_yaml_seq,
        None: yaml.SafeLoader.construct_yaml_str,
    }


class Job:
    def __init__(self, mount: Mount, path: pathlib.Path) -> None:
        self.mount = mount
        self.path = path

    @property
    def is_listed(self) -> bool:
        """True if the job is in jobs/, not in history/."""
        return self.path.parent.name == "jobs"

    def status(self) -> dict[str, Any]:
        """Return status.json, which kxfs-status(5) describes."""
        found: dict[str, Any] = json.loads((self.path / "status.json").read_text(encoding="utf-8"))
        return found

    def why(self) -> str:
        """Return why the job does not run, or has failed, as text; "" if there is no reason."""
        return (self.path / "why").read_text(encoding="utf-8").strip()

    def manifest(self) -> str:
        """Return the object in the cluster, or a local job's equivalent, as YAML."""
        return (self.path / "manifest.yaml").read_text(encoding="utf-8")

    def document(self) -> dict[str, Any]:
        """Return the AppDef from which the job was made; empty if it is unknown, or is a manifest."""
        try:
            text = (self.path / "app.yaml").read_text(encoding="utf-8")
        except FileNotFoundError:
            return {}
        found = None
        try:
            found = json.loads(text)  # the format that we write
        except ValueError:
            with contextlib.suppress(yaml.YAMLError):
                found = yaml.load(text, Loader=_Loader)
        if isinstance(found, dict) and "roles" not in found:
            found = found.get("app")  # the output of `torchx run --dryrun --json`
        return found if isinstance(found, dict) and isinstance(found.get("roles"), list) else {}

    def remove(self) -> None:
        """Cancel the job. If it is in history/, remove it for good."""
        try:
            os.rmdir(self.path)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise self._refused("remove", error) from error

    def actions(self) -> list[str]:
        """Return the actions that the job's ctl accepts now."""
        with contextlib.suppress(FileNotFoundError):
            return (self.path / "ctl").read_text().split()
        return []

    def control(self, word: str) -> None:
        """Write WORD to the job's ctl."""
        try:
            (self.path / "ctl").write_text(word)
        except OSError as error:
            raise self._refused(word, error) from error

    def replica(self, role: str, k: int) -> pathlib.Path:
        """Return the directory of replica K of ROLE."""
        taken: dict[str, str] = {}
        for number, known in enumerate(self.status()["roles"]):
            directory = _directory(known["name"])
            if directory in taken:
                directory = f"{directory}~{number}"
            taken[directory] = known["name"]
            if known["name"] != role:
                continue
            ids = [replica["id"] for replica in known["replicas"]]
            if k in ids:
                return self.path / f"{directory}-{k}"
            raise ValueError(f"{self.path.name} has no replica {k} of the role {role}, only {_list(ids)}")
        raise ValueError(f"{self.path.name} has no role {role}, only {_list(taken.values())}")

    def _refused(self, verb: str, error: OSError) -> KxfsError:
        return KxfsError(f"{verb} {self.path}: {error.strerror}; {self.mount.path}/.kxfs/log has the reason")


def find_job(mounts: Iterable[Mount], ident: str) -> Job | None:
    """Return the job with this id in the first of MOUNTS that has it. Skip a mount whose kxfs has
    ended meanwhile."""
    if "/" in ident or ident.startswith("."):
        return None
    for mount in mounts:
        for place in ("jobs", "history"):
            path = mount.path / place / ident
            if _is_dir(path):
                return Job(mount, path)
    return None


def _is_dir(path: pathlib.Path) -> bool:
    try:
        return path.is_dir()
    except OSError as error:
        if error.errno in ENDED:
            return False
        raise


def _directory(role: str) -> str:
    """Return the prefix of the directories of a role's replicas: kxfs-layout(5), Replicas."""
    if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*", role):
        return role
    return re.sub(r"[^a-z0-9-]", "", role.lower()).strip("-") or "role"


def _list(values: Iterable[object]) -> str:
    return ", ".join(map(str, values)) or "none yet"
