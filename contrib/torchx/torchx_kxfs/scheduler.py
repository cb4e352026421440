# SPDX-License-Identifier: MIT
"""TorchX's interface of a scheduler, implemented with the files of a mount.

TorchX's requests name only the job, not its mount. So the job is searched in all mounts of the
user, first in the named ones."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, List, Optional

import docker.errors
from torchx.schedulers.api import DescribeAppResponse, ListAppResponse, Scheduler, Stream, filter_regex
from torchx.specs import (
    NONE,
    AppDef,
    AppDryRunInfo,
    AppState,
    CfgVal,
    ReplicaStatus,
    Role,
    RoleStatus,
    is_terminal,
    runopts,
)
from torchx.workspace.docker_workspace import DockerWorkspaceMixin

from torchx_kxfs import options
from torchx_kxfs.document import CWD, document, role_of
from torchx_kxfs.job import Job, find_job
from torchx_kxfs.lines import log_lines
from torchx_kxfs.mount import ENDED, KxfsError, Mount, all_mounts, named_mount, open_mount, the_mount
from torchx_kxfs.submit import dry_run, new_name, submit

if TYPE_CHECKING:
    from docker import DockerClient

# Phases of a job that was suspended, or that is about to end.
ENDING = ("Aborting", "Suspending", "Terminating", "Completing")


class KxfsJob:
    """The submission: a document for a mount, and the images to push first. It is launched once,
    however often that is requested: the file name is chosen here, and the job is stored."""

    def __init__(self, mount: Mount, document: dict[str, Any], images: dict[str, tuple[str, str]]) -> None:
        self.mount = mount
        self.document = document
        self.images = images
        self.file = new_name()
        self.ident: str | None = None

    def launch(self) -> str:
        if self.ident is None:
            self.ident = submit(self.mount, self.file, self.text())
        return self.ident

    def text(self) -> str:
        try:
            return json.dumps(self.document, indent=1, ensure_ascii=False)
        except TypeError as error:
            raise KxfsError(f"the AppDef can't be written as JSON: {error}; look at the metadata of its roles") from error

    def __str__(self) -> str:
        """Return the manifest that the mount would make, with a placeholder for the end of the id.
        After the launch, return the real one."""
        job = find_job([self.mount], self.ident) if self.ident else None
        return job.manifest() if job else dry_run(self.mount, self.file, self.text())


class KxfsScheduler(DockerWorkspaceMixin, Scheduler[Mapping[str, CfgVal]]):
    """Runs jobs through a mount of kxfs."""

    def __init__(self, session_name: str, docker_client: DockerClient | None = None) -> None:
        super().__init__("kxfs", session_name, docker_client=docker_client)
        self._mounts: list[Mount] = []  # the mounts that earlier submissions named

    # --- submitting ---

    def _run_opts(self) -> runopts:
        return options.run_opts()

    def _validate(self, app: AppDef, scheduler: str, cfg: Any = None) -> None:
        """Do nothing: the mount checks the AppDef, and a role need not have a resource."""

    def _submit_dryrun(self, app: AppDef, cfg: Mapping[str, CfgVal]) -> AppDryRunInfo[KxfsJob]:
        # TorchX 0.7.0 passes on unknown options of a program
        options.refuse_unknown(self.run_opts(), cfg)
        mount = the_mount(_text(cfg, "mount"))
        images = {} if mount.is_local else self.dryrun_push_images(app, cfg)
        return AppDryRunInfo(KxfsJob(mount, document(app, cfg, mount), images), str)

    def schedule(self, dryrun_info: AppDryRunInfo[KxfsJob]) -> str:
        job = dryrun_info.request
        if job.ident is None:
            self.push_images(job.images)
        if job.mount not in self._mounts:
            self._mounts.append(job.mount)
        return job.launch()

    # --- workspaces ---

    @property
    def _docker_client(self) -> DockerClient:
        try:
            return super()._docker_client
        except docker.errors.DockerException as error:
            raise KxfsError(f"the workspace is built into an image, and no Docker daemon answers ({error}): start one, or "
                            "give --workspace '' to run the image as it is") from error

    def build_workspace_and_update_role(self, role: Role, workspace: str, cfg: Mapping[str, CfgVal]) -> None:
        """Build an image that contains the workspace. On a local mount, set the directory in which
        the job runs instead."""
        if the_mount(_text(cfg, "mount")).is_local:
            role.metadata[CWD] = _directory(workspace)
        elif cfg.get("image_repo"):
            super().build_workspace_and_update_role(role, workspace, cfg)
        else:
            raise KxfsError("the workspace is built into an image, which the cluster pulls from a repository: name it "
                            "with -cfg image_repo=REPOSITORY, or give --workspace '' to run the image as it is")

    def caching_build_workspace_and_update_role(self, role: Role, cfg: Mapping[str, CfgVal],
                                                build_cache: dict[object, object]) -> None:
        """Build the image of a role for TorchX since 2026, in which each role has its own workspace."""
        workspace = role.workspace
        if workspace and the_mount(_text(cfg, "mount")).is_local:
            if not workspace.is_unmapped_single_project():
                raise KxfsError(f"a local job runs in one directory; the workspace {workspace} is made of several")
            self.build_workspace_and_update_role(role, str(workspace), cfg)
        else:
            super().caching_build_workspace_and_update_role(role, cfg, build_cache)
        role.workspace = None  # a workspace that is left when the document is made was not built

    # --- jobs ---

    def describe(self, app_id: str) -> Optional[DescribeAppResponse]:
        job = self._find(app_id)
        try:
            return _description(job) if job else None
        except FileNotFoundError:  # it has just been removed from jobs/
            job = self._find(app_id)
            return _description(job) if job else None

    def describe_native(self, app_id: str) -> Optional[AppDryRunInfo[str]]:
        """Return the manifest. (TorchX 0.7.0 does not call this.)"""
        job = self._find(app_id)
        return AppDryRunInfo(job.manifest(), str) if job else None

    def list(self, cfg: Optional[Mapping[str, CfgVal]] = None) -> List[ListAppResponse]:
        named = named_mount(_text(cfg or {}, "mount"))
        statuses: dict[str, dict[str, Any]] = {}
        for mount in [named] if named else all_mounts():
            try:
                statuses.update((status["id"], status) for status in mount.statuses())
            except OSError as error:
                if named or error.errno not in ENDED:
                    raise
        return [_list_entry(status) for status in statuses.values()]

    def _cancel_existing(self, app_id: str) -> None:
        """If TorchX has `delete`, cancel a job without removing it, unless its kind has no suspend. A
        cancelled local job is kept in history/."""
        job = self._existing(app_id)
        if not job.is_listed:
            return
        if not hasattr(Scheduler, "delete") or job.mount.is_local:
            job.remove()
            return
        try:
            status, actions = job.status(), job.actions()
        except FileNotFoundError:  # it has just left jobs/
            return
        if status.get("pending_command") == "suspend" or "resume" in actions or status["phase"] in ENDING \
                or is_terminal(_state(status["state"])):
            return
        if "suspend" in actions or status["phase"] == "Restarting":  # in which Volcano refuses it, with an error
            job.control("suspend")
        else:
            job.remove()

    def _delete_existing(self, app_id: str) -> None:
        self._existing(app_id).remove()

    def log_iter(self, app_id: str, role_name: str, k: int = 0, regex: Optional[str] = None,
                 since: Optional[datetime] = None, until: Optional[datetime] = None, should_tail: bool = False,
                 streams: Optional[Stream] = None) -> Iterable[str]:
        if streams not in (None, Stream.COMBINED):
            raise ValueError("standard output and standard error of a job are one stream: leave --streams out, or say "
                             "combined")
        job = self._existing(app_id)
        lines = log_lines(job, job.replica(role_name, k), since, until, should_tail)
        return filter_regex(regex, lines) if regex else lines

    def _find(self, app_id: str) -> Job | None:
        """Return the job, searching the named mounts first. If it is not found but kxfs has ended
        in some mount, do not report it as missing: it may still run there."""
        named = named_mount(None)
        own = [*self._mounts, *([named] if named else [])]
        ended: list[KxfsError] = []
        job = find_job(own, app_id) or find_job(all_mounts(ended), app_id)
        if not job:
            for mount in own:
                open_mount(mount.path)
            if ended:
                raise KxfsError(f"{app_id} is in no mount that answers, and {ended[0]}")
        return job

    def _existing(self, app_id: str) -> Job:
        job = self._find(app_id)
        if job is None:
            raise ValueError(f"there is no job {app_id}")
        return job


def create_scheduler(session_name: str, **kwargs: Any) -> KxfsScheduler:
    """Create the scheduler. TorchX passes the parameters of all schedulers."""
    return KxfsScheduler(session_name, docker_client=kwargs.get("docker_client"))


def _text(cfg: Mapping[str, CfgVal], name: str) -> str | None:
    value = cfg.get(name)
    return str(value) if value else None


def _directory(workspace: str) -> str:
    """Return the directory that a workspace names."""
    path = os.path.abspath(os.path.expanduser(workspace[7:] if workspace.startswith("file://") else workspace))
    if not os.path.isdir(path):
        raise KxfsError(f"a local job runs in its workspace, and {workspace} is no directory of this machine: give "
                        "--workspace DIRECTORY, or --workspace '' to run in the current directory")
    return path


def _state(word: str) -> AppState:
    """Return the state. A mount's states have TorchX's own names."""
    return AppState.__members__.get(word, AppState.UNKNOWN)


def _list_entry(status: dict[str, Any]) -> ListAppResponse:
    entry = ListAppResponse(app_id=status["id"], state=_state(status["state"]))
    entry.name = status["app"]  # TorchX 0.7.0 does not show this
    return entry


def _description(job: Job) -> DescribeAppResponse:
    status, written_app = job.status(), job.document()
    written = {role.get("name"): role for role in written_app.get("roles", ()) if isinstance(role, dict)}
    description = DescribeAppResponse(
        app_id=status["id"],
        state=_state(status["state"]),
        num_restarts=status["retries"],
        msg=job.why() or NONE,
        ui_url=job.path.as_uri(),
        roles=[role_of(role, written.get(role["name"], {})) for role in status["roles"]],
        roles_statuses=[RoleStatus(role["name"], [_replica(role["name"], replica, status) for replica in role["replicas"]])
                        for role in status["roles"]],
    )
    failed = [replica for role in description.roles_statuses for replica in role.replicas
              if replica.structured_error_msg != NONE]
    if failed:
        description.structured_error_msg = failed[0].structured_error_msg
    metadata = written_app.get("metadata")
    if isinstance(metadata, dict):
        # TorchX 0.7.0 does not show this
        description.metadata = {name: str(value) for name, value in metadata.items()}
    return description


def _replica(role: str, replica: dict[str, Any], status: dict[str, Any]) -> ReplicaStatus:
    """Return the replica's failure, if it has failed, in TorchX's own format. The last lines are
    those of the replica that failed first. So they are shown only if it is the only one that
    failed."""
    error = NONE
    alone = sum(one["state"] == "FAILED" for other in status["roles"] for one in other["replicas"]) == 1
    if replica["state"] == "FAILED":
        code = replica["exit_code"] if replica["exit_code"] is not None else -(replica["signal"] or 0)
        seen = datetime.fromisoformat(status["transitions"][-1]["time"].replace("Z", "+00:00"))
        message = replica["message"]
        extra: dict[str, Any] = {"timestamp": int(seen.timestamp())}
        words = status.get("last_words", "") if alone else ""
        if words:
            extra["py_callstack"] = words
            message += f": {words.splitlines()[-1]}"
        error = json.dumps({"message": {"message": message, "errorCode": code, "extraInfo": extra}})
    return ReplicaStatus(id=replica["id"], state=_state(replica["state"]), role=role, hostname=replica["node"],
                         structured_error_msg=error)
