# SPDX-License-Identifier: MIT
"""The units of contrib/systemd: their commands, run in systemd's order."""

import re
import shlex

import pytest
from harness import LIMIT, ROOT, USER, app, mounts, run

STARTS = ("ExecCondition", "ExecStartPre", "ExecStart")


def commands(kind):
    """Return the commands of a unit: (setting, the words of one command)."""
    text = (ROOT / f"contrib/systemd/{kind}/kxfs@.service.in").read_text()
    found = [(name, shlex.split(line)) for name, line in re.findall(r"^(Exec\w+)=(.*)$", text, re.M)]
    assert [name for name, _ in found].count("ExecStart") == 1
    return found


def start_unit(kx, kind):
    """Run the commands of the unit as systemd does if its start fails: those that start it, up to the first failure,
    then all of ExecStopPost. Return the results of the former."""
    values = {"$KXFS_OPTIONS": ["-o", f"state={kx.base}/unit"], "$KXFS_SOURCE": ["local:"], "%f": [str(kx.mnt)],
              "@BINDIR@/kxfs": [kx.binary]}
    results = []
    for name, words in commands(kind):
        if name in STARTS and results and results[-1].returncode != 0 or name not in (*STARTS, "ExecStopPost"):
            continue
        words[0] = words[0].lstrip("-")  # systemd's mark: this command may fail
        command = [value for word in words for value in values.get(word, [word])]
        result = run(command, check=False, user=kx.user, cwd=kx.work, timeout=LIMIT)
        if name in STARTS:
            results.append(result)
    return results


@pytest.mark.parametrize("kind,user", [("system", None), ("user", USER)])
def test_start_leaves_the_mount_of_another_kxfs(make_kx, kind, user):
    kx = make_kx(user=user)
    (kx.work / "a.yaml").write_text(app("echo up; while [ ! -e go ]; do sleep 0.05; done"))
    kx.call(f"cp {kx.work}/a.yaml submit/ && tail -n +1 -f submit/a.yaml.job/main-0/log | grep -q -m 1 up")
    results = start_unit(kx, kind)
    assert results[-1].returncode != 0 and "a kxfs is mounted here already" in results[-1].stderr
    assert kx.call("cat submit/a.yaml.job/state").stdout == "RUNNING\n"
    (kx.work / "go").touch()
    assert kx.call("cat submit/a.yaml.job/wait").stdout == "SUCCEEDED\n"


@pytest.mark.parametrize("kind", ["system", "user"])
def test_start_leaves_another_file_system(make_kx, kind):
    kx = make_kx(start=False)
    run(["mount", "-t", "tmpfs", "foreign", str(kx.mnt)])
    try:
        (kx / "file").touch()
        results = start_unit(kx, kind)
        assert results[-1].returncode != 0 and "not empty" in results[-1].stderr
        assert str(kx.mnt) in mounts("tmpfs") and kx.ls() == ["file"]
    finally:
        run(["umount", str(kx.mnt)], check=False)
