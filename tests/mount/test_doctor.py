# SPDX-License-Identifier: MIT
"""kxfs doctor on a machine without a cluster: its report on FUSE and on the state directory."""

import os
import re

import harness


def doctor(kx, *words, **kwargs):
    p = harness.run([kx.binary, "doctor", *words], check=False, **kwargs)
    assert p.stderr == ""
    return p.returncode, p.stdout


def test_local(make_kx, tmp_path):
    kx = make_kx(start=False)
    status, said = doctor(kx, "-o", f"state={tmp_path}/not/yet/there", "local:")
    assert status == 0
    assert re.fullmatch(rf"""kxfs \S+
libraries: .*
features: .*
backends: .*
(missed, .*
)?This machine
  ok       Linux \S+ {os.uname().machine}
  ok       FUSE: root may mount
  ok       {re.escape(str(tmp_path))}/not/yet/there can be made, [\d.]+ GiB free
Mounting will work\.
""", said)
    assert not (tmp_path / "not").exists()


def test_no_cluster(make_kx, tmp_path):
    """Without FUSE, the report names what works without it."""
    kx = make_kx(start=False)
    env = {"KUBECONFIG": "", "HOME": str(tmp_path)}
    status, said = doctor(kx, "-o", f"state={tmp_path}/state", env=env)
    assert status == 1 and said.endswith(
        "Mounting will not work. Without a cluster, jobs can run as processes of this machine: kxfs local: MOUNTPOINT\n")
    status, said = doctor(kx, "-o", f"state={tmp_path}/state", "volcano:training", env=env)
    assert status == 1 and said.endswith("Mounting will not work.\n")


def test_while_mounted(kx):
    """A report is needed when something is wrong, which is when the state directory is in use."""
    status, said = doctor(kx, "-o", f"state={kx.state}", "local:")
    assert status == 0 and f"  ok       {kx.state} can be written, " in said


def test_state_can_not_be_kept(kx, tmp_path):
    (tmp_path / "file").write_text("")
    status, said = doctor(kx, "-o", f"state={tmp_path}/file/state", "local:")
    assert status == 1 and said.endswith("Mounting will not work.\n")
    assert f"  wrong    {tmp_path}/file/state: the state can't be kept here: Not a directory" in said
