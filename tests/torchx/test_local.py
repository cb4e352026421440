# SPDX-License-Identifier: MIT
"""TorchX's commands with a mount of local:."""

import json
import os
import re
import signal

import harness
import yaml
from environment import SH, SOURCE, UNMOUNT, error_of, ident, job, launched

COMPONENT = '''
import torchx.specs as specs

def pair(word: str, workers: int = 2) -> specs.AppDef:
    """Two roles.

    Args:
        word: what they print
        workers: how many workers there are
    """
    def role(name, number):
        return specs.Role(name=name, image="none", entrypoint="sh", num_replicas=number,
                          args=["-c", f"echo {word} of {name} ${{replica_id}} in ${{app_id}}"],
                          resource=specs.Resource(cpu=1, gpu=0, memMB=100),
                          mounts=[specs.BindMount("/tmp", "/data", read_only=True)])
    return specs.AppDef(name="pair", roles=[role("Head Node", 1), role("worker", workers)], metadata={"team": "x"})
'''


def test_run_and_read(kx, torchx):
    """A job from its submission to its log. Nothing is left in submit/, and the job knows its
    handle."""
    p = torchx(kx, "run", "-s", "kxfs", "--wait", *SH, "echo one; echo two >&2; echo $$TORCHX_JOB_ID")
    handle = launched(p)
    assert handle == f"kxfs://torchx/{kx.jobs()[0].id}" and kx.ls("submit") == []
    assert job(kx, handle).state() == "SUCCEEDED"
    assert "SUCCEEDED" in torchx(kx, "status", handle).stdout
    assert sorted(torchx(kx, "log", handle).stdout.splitlines()) == [f"sh/0 {handle}", "sh/0 one", "sh/0 two"]
    assert torchx(kx, "log", "--regex", "^t.o", f"{handle}/sh/0").stdout == "sh/0 two\n"
    assert re.search(rf"^{handle} .*SUCCEEDED", torchx(kx, "list", "-s", "kxfs").stdout, re.M)
    described = torchx(kx, "describe", handle).stdout
    assert "'entrypoint': 'sh'" in described and "echo one" in described


def test_failure(kx, torchx):
    """--wait fails if the job does. The status shows the reason and the replica's exit code."""
    p = torchx(kx, "run", "-s", "kxfs", "--wait", *SH, "sleep 1; echo the last line; exit 3", check=False)
    assert p.returncode == 1
    status = torchx(kx, "status", launched(p)).stdout
    assert "State: FAILED" in status and "(exitcode: 3)" in status and "max_retries is 0" in status
    assert "error_msg: exit code 3: the last line" in status


def test_read_along(kx, torchx):
    """--log shows lines until the job ends; so does log --tail."""
    p = torchx(kx, "run", "-s", "kxfs", "--log", *SH, "for i in 1 2 3; do echo line $$i; sleep 0.3; done")
    assert p.stderr.index("sh/0 line 1\n") < p.stderr.index("sh/0 line 3\n")
    assert torchx(kx, "log", "--tail", launched(p)).stdout == "sh/0 line 1\nsh/0 line 2\nsh/0 line 3\n"


def test_component_of_ones_own(kx, torchx, work):
    """Several roles, one whose name is not a valid file name. Logs of one role and of one replica."""
    (work / "parts.py").write_text(COMPONENT)
    handle = launched(torchx(kx, "run", "-s", "kxfs", "--wait", "parts.py:pair", "--word", "hello", "--workers", "3"))
    name = ident(handle)
    lines = [f"worker/{k} hello of worker {k} in {name}" for k in range(3)]
    assert sorted(torchx(kx, "log", f"{handle}/worker").stdout.splitlines()) == lines
    assert torchx(kx, "log", f"{handle}/worker/2").stdout == lines[2] + "\n"
    assert torchx(kx, "log", f"{handle}/Head Node/0").stdout == f"Head Node/0 hello of Head Node 0 in {name}\n"
    p = torchx(kx, "log", f"{handle}/worker/7", check=False)
    assert "has no replica 7 of the role worker, only 0, 1, 2" in p.stderr
    p = torchx(kx, "log", f"{handle}/nobody/0", check=False)
    assert "has no role nobody, only Head Node, worker" in p.stderr


def test_torchxconfig(kx, make_kx, torchx, work):
    """A project's file names the scheduler, the mount and the component."""
    other = make_kx()
    (work / "parts.py").write_text(COMPONENT)
    (work / ".torchxconfig").write_text(f"[cli:run]\nscheduler = kxfs\ncomponent = parts.py:pair\n\n"
                                        f"[kxfs]\nmount = ~/{kx.mnt.name}\n\n[component:parts.py:pair]\nword = there\n")
    handle = launched(torchx(None, "run", "--wait", env={"HOME": str(kx.base)}))
    assert job(kx, handle).log("worker-0") == f"there of worker 0 in {ident(handle)}\n".encode()
    # A handle is found in any mount. The option takes precedence over the file and the variable.
    assert "SUCCEEDED" in torchx(other, "status", handle).stdout
    handle = launched(torchx(kx, "run", "-cfg", f"mount={other.mnt}", "--", "--word", "x"))
    assert job(other, handle).finish() == "SUCCEEDED"


def test_cancel(kx, torchx):
    """A cancelled job ends, and can still be read. Cancelling it again has no effect."""
    handle = launched(torchx(kx, "run", "-s", "kxfs", *SH, "echo begin; sleep 1000"))
    job(kx, handle).until_logged("begin", "sh-0")
    torchx(kx, "cancel", handle)
    assert kx.ls("jobs") == []
    assert "State: CANCELLED" in torchx(kx, "status", handle).stdout
    assert torchx(kx, "log", f"{handle}/sh/0").stdout == "sh/0 begin\n"
    assert torchx(kx, "log", "--tail", f"{handle}/sh/0").stdout == "sh/0 begin\n"
    torchx(kx, "cancel", handle)
    torchx(kx, "cancel", "kxfs://torchx/nobody-knows")
    p = torchx(kx, "status", "kxfs://torchx/nobody-knows", check=False)
    assert p.returncode == 1 and "does not exist" in p.stderr


def test_delete(kx, torchx, environment):
    """A deleted job moves to the history with its output. Deleting it there removes it for good."""
    if not environment.can_delete:
        return
    handle = launched(torchx(kx, "run", "-s", "kxfs", *SH, "sleep 1000"))
    torchx(kx, "delete", handle)
    assert kx.ls("jobs") == [] and ident(handle) in kx.ls("history")
    torchx(kx, "delete", handle)
    assert ident(handle) not in kx.ls("history")
    torchx(kx, "delete", handle)


def test_refusal(kx, torchx, work):
    """The refusal is kxfs's own message, with line and column. Nothing is launched or left behind."""
    (work / "parts.py").write_text(COMPONENT.replace('Role(name=name', 'Role(port_map={"No Port": 1}, name=name'))
    for dryrun in ([], ["--dryrun"]):
        p = torchx(kx, "run", "-s", "kxfs", *dryrun, "parts.py:pair", "--word", "hello", check=False)
        assert re.match(r'torchx-[0-9a-f]+\.json:\d+:\d+: roles\[0\]\.port_map.*"No Port"', error_of(p)), p.stderr
    assert kx.ls("submit") == kx.ls("dryrun") == kx.ls("jobs") == []


def test_dryrun(kx, torchx, environment):
    """A dry run shows the text of `dryrun/`: manifest.yaml of a local job. Nothing is launched or left
    behind."""
    out = torchx(kx, "run", "-s", "kxfs", "--dryrun", *SH, "echo hello").stdout
    request = out[out.index("=== SCHEDULER REQUEST ==="):]
    assert "work_dir: " in request and "echo hello" in request
    if environment.version == "nightly":
        out = json.loads(torchx(kx, "run", "-s", "kxfs", "--dryrun", "--json", *SH, "echo hello").stdout)
        assert "work_dir: " in out["request"] and out["scheduler"] == "kxfs"
    assert kx.ls("dryrun") == kx.ls("submit") == kx.ls("jobs") == []


def where(torchx, kx, *args, **kwargs):
    """Return the directory in which a job ran."""
    p = torchx(kx, "run", "-s", "kxfs", *args, *SH, "pwd -P", **kwargs)
    return job(kx, launched(p)).until("SUCCEEDED") and job(kx, launched(p)).log("sh-0").decode().strip()


def test_workspace(kx, torchx, work, tmp_path):
    """The job runs in its workspace, by default the directory where torchx was called."""
    assert where(torchx, kx) == str(work)
    assert where(torchx, kx, "--workspace", str(tmp_path)) == str(tmp_path)
    assert where(torchx, kx, "--workspace", "") == str(work)
    assert where(torchx, kx, "-cfg", f"cwd={tmp_path}") == str(tmp_path)
    for wrong, text in (("--workspace=/nowhere", "/nowhere is no directory"), ("-cfg=cwd=here", "absolute")):
        p = torchx(kx, "run", "-s", "kxfs", wrong, *SH, "true", check=False)
        assert text in error_of(p)
    assert len(kx.jobs()) == 4


def test_environment(kx, torchx, work):
    """A job gets the environment of the user who runs it, as with TorchX's own local schedulers:
    the variables that differ from those of kxfs. The job's directory is the last one in PATH.
    inherit_env=False turns this off, and the role's own variables take precedence."""
    tool = work / "main.sh"
    tool.write_text('#!/bin/sh\necho "$PRICE $(printenv GONE) $0 $PATH"\n')
    tool.chmod(0o755)
    env = {"PRICE": "5$ or ${app_id}", "VIRTUAL_ENV": "/venv", "BASH_FUNC_f%%": "() { :; }"}
    run = ("run", "-s", "kxfs", "--wait")
    handle = launched(torchx(kx, *run, "utils.sh", "main.sh", env=env))
    said = job(kx, handle).log("sh-0").decode().strip()
    assert said.startswith("5$ or ${app_id}  ") and said.endswith(f":{work}"), said
    document = json.loads(job(kx, handle).read("app.yaml"))
    assert document["roles"][0]["env"]["VIRTUAL_ENV"] == "/venv"
    assert "PWD" not in document["roles"][0]["env"] and "inherit_env" not in document["scheduler_args"]
    handle = launched(torchx(kx, "run", "-s", "kxfs", "--wait", "-cfg", "inherit_env=False", *SH, "echo $$PRICE.", env=env))
    assert job(kx, handle).log("sh-0") == b".\n"


def test_api_without_a_workspace(kx, api, work):
    """The job gets the caller's directory and environment."""
    found = api(kx, """
        os.environ["MINE"] = "yes"
        handle = runner.run(sh("pwd -P; echo $MINE $OTHER", env={"OTHER": "o"}), "kxfs")
        runner.wait(handle, 0.1)
        answer(list(runner.log_lines(handle, "main", 0)))
        """)
    assert found == [f"{work}\n", "yes o\n"]


def test_launched_once(kx, api):
    """A dry run is launched once, however often it is scheduled. Its id has a placeholder;
    afterwards it shows the job."""
    before, first, second, after = api(kx, """
        info = runner.dryrun(sh("true"), "kxfs")
        answer([str(info), runner.schedule(info), runner.schedule(info), str(info)])
        """)
    assert first == second and len(kx.jobs()) == 1
    assert yaml.safe_load(before)["id"] == ident(first).rpartition("-")[0] + "-SUFFIX"
    assert yaml.safe_load(after)["id"] == ident(first)


def test_description(kx, api, environment):
    """The description has everything that app.yaml contains about a role. The native request is the
    manifest."""
    found = api(kx, """
        from torchx.specs import BindMount, Resource, RetryPolicy
        handle = runner.run(AppDef("app", [Role("main", image="none", entrypoint="sh", args=["-c", "exit 3"], max_retries=1,
            retry_policy=RetryPolicy.REPLICA, port_map={"http": 80}, metadata={"a": {"b": "c"}}, min_replicas=1,
            resource=Resource(cpu=1, gpu=0, memMB=64), mounts=[BindMount("/tmp", "/data", True)])],
            metadata={"team": "x", "kubernetes": {"VCJob": {"spec": {}}}}), "kxfs")
        status = runner.wait(handle, 0.1)
        app = runner.describe(handle)
        role = app.roles[0]
        native = runner.describe_native(handle) if hasattr(runner, "describe_native") else None
        answer([role.max_retries, role.retry_policy.name, role.port_map, role.metadata, role.min_replicas, role.resource.cpu,
                role.resource.memMB, [vars(mount) for mount in role.mounts], str(status.structured_error_msg), str(native)])
        """)
    assert found[:5] == [1, "REPLICA", {"http": 80}, {"a": {"b": "c"}}, 1]
    assert found[5:8] == [1, 64, [{"src_path": "/tmp", "dst_path": "/data", "read_only": True}]]
    assert "exit code 3" in found[8]
    if environment.version != "0.7.0":
        assert "work_dir: " in found[9] and "roles:" in found[9]


YAML = """
name: app
roles:
- <<: &base {image: none, entrypoint: "true"}
  name: main
  args: [<<, 010]
  env: {A: yes}
  min_replicas: NULL
  resource: {cpu: 1.5, gpu: 0, memMB: 1e5}
  mounts: ["type=bind,src=/a,dst=/b,readonly", {type: bind, src_path: /c, dst_path: /d}, "type=volume,src=e,dst=/f"]
- {<<: *base, name: other, resource: {cpu: 1, gpu: 0, memMB: 64000.0}, mounts: "type=device,src=/dev/fuse,perm=rw"}
"""


def test_description_of_yaml(kx, api, torchx):
    """The description of a job that was not written by TorchX: a merge key, mounts as text, and numbers with an
    exponent or a fraction."""
    handle = f"kxfs://torchx/{kx.submit(YAML).id}"
    main, other = api(kx, f"""
        answer([[role.image, role.entrypoint, role.args, role.env, role.min_replicas, role.resource.memMB,
                 [[type(mount).__name__, *vars(mount).values()] for mount in role.mounts]]
                for role in runner.describe("{handle}").roles])
        """)
    assert main == ["none", "true", ["<<", "010"], {"A": "yes"}, None, 100000, [
        ["BindMount", "/a", "/b", True], ["BindMount", "/c", "/d", False], ["VolumeMount", "e", "/f", False]]]
    assert other[-2:] == [64000, [["DeviceMount", "/dev/fuse", "/dev/fuse", "rw"]]]
    for command in ("status", "log", "cancel"):
        torchx(kx, command, handle)


def test_own_dump(kx, torchx, environment):
    """The output of `run --dryrun --json` for this scheduler can be submitted, and keeps its
    directory."""
    if environment.version == "0.7.0":
        return
    out = torchx(kx, "run", "-s", "kxfs", "--dryrun", "--json", *SH, "pwd -P").stdout
    dump = json.loads(out)
    assert dump["scheduler"] == "kxfs" and not dump["app"]["roles"][0]["metadata"]
    ran = kx.submit(out, "dump.json")
    assert ran.finish() == "SUCCEEDED" and ran.log("sh-0").decode().strip() == dump["cfg"]["cwd"]
    assert "pwd -P" in torchx(kx, "describe", f"kxfs://torchx/{ran.id}").stdout


def test_mount_left_behind(kx, make_kx, torchx):
    """If kxfs has ended in a mount, its job may still be running. The job is not reported as
    missing, and cancel fails."""
    other = make_kx()
    handle = launched(torchx(other, "run", "-s", "kxfs", *SH, "sleep 1000"))
    other.end(signal.SIGKILL)
    for command in ("status", "cancel", "log"):
        p = torchx(None, command, handle, check=False)
        assert f"kxfs has ended and left {other.mnt} behind" in p.stderr and p.returncode != 0, p.stderr
    other.start()
    torchx(None, "cancel", handle)
    assert "State: CANCELLED" in torchx(None, "status", handle).stdout


def test_which_mount(kx, make_kx, torchx, work):
    """A single mount is found automatically. If there is no mount, several, a dead one, or none at
    the given path, each case has its own message."""
    other = make_kx()
    run = ("run", "-s", "kxfs", *SH, "true")

    def fails(mount, *args, **env):
        return error_of(torchx(mount, *args, env=env, check=False))

    def alone(*mounts):
        """Run the command with only MOUNTS mounted; other mounts of this machine are hidden."""
        keep = " ".join(f"-e ' {mount.mnt}$'" for mount in mounts) or "-e ' $'"
        command = " ".join([str(torchx.program), *(f"'{word}'" for word in run)])
        return harness.run(["unshare", "-m", "bash", "-c",
                            f"sed -n 's/.* - fuse.kxfs .*/&/p' /proc/self/mountinfo | cut -d' ' -f5 | sed 's/^/ /' | "
                            f"grep -v {keep} | {UNMOUNT}; {command}"], cwd=work, check=False, env={"HOME": str(work)})

    assert launched(alone(kx)) and len(kx.jobs()) == 1
    text = error_of(alone(kx, other))
    assert str(kx.mnt) in text and str(other.mnt) in text and "-cfg mount=" in text and "KXFS_MOUNT" in text
    assert "mount it with `kxfs SOURCE DIRECTORY`" in error_of(alone())
    assert f"mounted at {work}:" in fails(None, *run, KXFS_MOUNT=str(work))
    assert "mounted at /nowhere:" in fails(kx, "run", "-s", "kxfs", "-cfg", "mount=/nowhere", *SH, "true")
    other.end(signal.SIGKILL)
    assert "kxfs has ended" in fails(other, *run)
    assert launched(alone(kx, other)), "a dead mount does not count"


def test_run_option_that_there_is_not(kx, torchx, api):
    """A misspelled option, in -cfg or from a program, is refused by name. TorchX 0.7.0 itself would
    drop it."""
    p = torchx(kx, "run", "-s", "kxfs", "-cfg", "inherit_env=True,tme_limit=1h", *SH, "true", check=False)
    assert p.returncode != 0 and "Unknown run option `tme_limit`" in p.stderr and "time_limit" in p.stderr
    text = api(kx, """
        from torchx.specs import InvalidRunConfigException
        try:
            answer(runner.run(sh("true"), "kxfs", {"tme_limit": "1h"}))
        except InvalidRunConfigException as error:
            answer(str(error))
        """)
    assert "Unknown run option `tme_limit`" in text and kx.jobs() == []


def test_mount_that_has_ended(kx, make_kx, api):
    """A job is found even if kxfs has ended in a mount that is searched first. A job that was in
    that mount is not reported as missing."""
    other = make_kx()
    found = api(kx, f"""
        first = runner.run(sh("true"), "kxfs", {{"mount": "{other.mnt}"}})
        os.kill({other.pid}, 9)
        while True:
            try:
                os.stat("{other.mnt}/jobs")
            except OSError as e:
                break
        second = runner.run(sh("true"), "kxfs")
        try:
            runner.status(first)
        except RuntimeError as e:
            answer([str(runner.wait(second, 0.1).state), second in [app.app_handle for app in runner.list("kxfs")], str(e)])
        """)
    assert other.end(signal.SIGKILL) == -signal.SIGKILL
    assert found == ["SUCCEEDED", True, f"kxfs has ended and left {other.mnt} behind: mount again with `kxfs SOURCE {other.mnt}`"]


def test_runner(kx, api):
    """The API: what exists, what ran, what it printed; one stream."""
    found = api(kx, """
        handle = runner.run(sh("echo one; echo two >&2"), "kxfs")
        status = runner.wait(handle, wait_interval=0.1)
        scheduler = runner._scheduler("kxfs")
        ident = handle.rpartition("/")[2]
        def refused(**kwargs):
            try:
                list(scheduler.log_iter(ident, "main", 0, **kwargs))
            except ValueError as e:
                return str(e)
        answer({
            "state": str(status.state), "role": status.roles[0].role, "restarts": status.num_restarts, "ui": status.ui_url,
            "lines": sorted(runner.log_lines(handle, "main", 0)),
            "again": sorted(runner.log_lines(handle, "main", 0, should_tail=True, streams=Stream.COMBINED)),
            "stderr": refused(streams=Stream.STDERR),
            "exists": [scheduler.exists(ident), scheduler.exists("nobody"), scheduler.exists("../jobs")],
            "describe": runner.describe("kxfs://torchx/nobody"),
            "listed": [app.app_handle for app in runner.list("kxfs")] == [handle],
            "image": scheduler.describe(ident).roles[0].image,
        })
        """)
    assert found["state"] == "SUCCEEDED" and found["role"] == "main" and found["restarts"] == 0
    assert found["lines"] == found["again"] == ["one\n", "two\n"]
    assert "one stream" in found["stderr"]
    assert found["exists"] == [True, False, False] and found["describe"] is None and found["listed"]
    assert found["image"] == "none" and os.path.isdir(found["ui"].removeprefix("file://"))


def test_times(kx, api):
    """since and until select lines by their times, while they arrive and for a job in the history."""
    found = api(kx, """
        steps = "".join(f"echo {word}; while [ ! -e $PWD/{word} ]; do sleep 0.1; done; "
                        for word in ("first", "second", "third"))
        handle = runner.run(sh(f"cd {os.getcwd()}; {steps}"), "kxfs")
        ident, scheduler = handle.rpartition("/")[2], runner._scheduler("kxfs")
        between = []
        for line in scheduler.log_iter(ident, "main", 0, should_tail=True):
            between.append(datetime.datetime.now())
            if len(between) == 3:
                break
            open(line.strip(), "w").close()
        after_first, after_second = between[:2]
        def read(**kwargs):
            return list(runner.log_lines(handle, "main", 0, **kwargs))
        out = [
            read(since=after_first),
            read(until=after_first),
            read(since=after_first.astimezone(datetime.timezone.utc), until=after_second),
            read(since=after_first, regex="^th"),
            read(since=after_first, until=after_second, should_tail=True),
        ]
        tail = iter(scheduler.log_iter(ident, "main", 0, since=after_second, should_tail=True))
        first = next(tail)
        runner.cancel(handle)
        answer([*out, first, list(tail), read(since=after_first, should_tail=True)])
        """)
    assert found == [["second\n", "third\n"], ["first\n"], ["second\n"], ["third\n"], ["second\n"], "third\n", [],
                     ["second\n", "third\n"]]


def test_until_a_time_to_come(kx, api):
    """A reader that follows the log ends at `until`, also if its replica prints nothing more: alone, and beside a
    replica that does."""
    found = api(kx, """
        found = []
        for other in (0, 1):
            script = "echo first; while [ ${replica_id} = 1 ]; do echo more; sleep 0.1; done; sleep 1000"
            role = Role("main", image="none", entrypoint="sh", args=["-c", script], num_replicas=1 + other)
            handle = runner.run(AppDef("app", [role]), "kxfs")
            until = datetime.datetime.now() + datetime.timedelta(seconds=3)
            found.append(list(runner.log_lines(handle, "main", 0, until=until, should_tail=True)))
            found.append((datetime.datetime.now() - until).total_seconds() >= 0)
            runner.cancel(handle)
        answer(found)
        """)
    assert found == [["first\n"], True] * 2


def test_attempts(kx, api):
    """A reader that follows the log gets all attempts, also with times. Otherwise it gets the last
    one."""
    found = api(kx, """
        script = (f"cd {os.getcwd()}; [ -e again ] && {{ echo second; exit; }}; touch again; echo first; "
                  "while [ ! -e go ]; do sleep 0.1; done; exit 1")
        handle = runner.run(sh(script, max_retries=1), "kxfs")
        timed = []
        for line in runner.log_lines(handle, "main", 0, since=datetime.datetime(2000, 1, 1), should_tail=True):
            timed.append(line)
            open("go", "w").close()
        answer([timed, list(runner.log_lines(handle, "main", 0, should_tail=True)),
                list(runner.log_lines(handle, "main", 0)), runner.wait(handle, 0.1).num_restarts])
        """)
    assert found == [["first\n", "second\n"], ["first\n", "second\n"], ["second\n"], 1]


def test_readme(kx, torchx, work):
    """The README's commands, with a mount at ~/kx and its .torchxconfig. Without torchrun, the job
    itself fails."""
    text = (SOURCE / "README.md").read_text()
    home = {"HOME": str(kx.base)}
    (kx.base / "kx").symlink_to(kx.mnt)
    [config] = re.findall(r"^    (\[cli:run\]\n(?:    .*\n|\n)*)", text, re.M)
    (work / ".torchxconfig").write_text(re.sub(r"^    ", "", config, flags=re.M))
    handle = None
    for line in re.findall(r"^    torchx (.*)", text, re.M):
        p = torchx(None, *re.sub(r"kxfs://\S+", lambda _: handle, line).split(), env={**home, "KXFS_MOUNT": f"{kx.base}/kx"})
        handle = handle or launched(p)
        job(kx, handle).finish("FAILED", "SUCCEEDED")
    name = ident(launched(torchx(None, "run", "dist.ddp", "-j", "1x1", "--script", "train.py", env=home)))
    assert kx.ls("jobs") == sorted([ident(handle), name])
