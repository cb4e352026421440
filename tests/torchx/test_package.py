# SPDX-License-Identifier: MIT
"""The installed package: TorchX's own schedulers remain, the options are those of kxfs, and the
types are right."""

import re

from environment import SOURCE
from harness import ROOT, run


def test_schedulers_of_torchx_stay(api):
    """All of TorchX's schedulers are there, in its order, as usable as without us, and with the
    same default. Those that a newer TorchX has removed report that in the way that its commands
    expect."""
    found, own, default, wrong = api(None, """
        import importlib
        from torchx.schedulers import DEFAULT_SCHEDULER_MODULES, get_default_scheduler_name, get_scheduler_factories
        def outcome(make):
            try:
                return type(make("session")).__name__
            except Exception as e:
                return f"{type(e).__name__}: {e}"
        factories = get_scheduler_factories()
        wrong = []
        for name in factories:
            if name in DEFAULT_SCHEDULER_MODULES:
                module = DEFAULT_SCHEDULER_MODULES[name]
                expected = outcome(lambda session: importlib.import_module(module).create_scheduler(session))
            elif name == "kxfs":
                expected = "KxfsScheduler"
            else:
                expected = f"ModuleNotFoundError: No module named 'torchx.schedulers.{name}_scheduler'"
            if outcome(factories[name]) != expected:
                wrong.append([name, outcome(factories[name]), expected])
        answer([list(factories), list(DEFAULT_SCHEDULER_MODULES), get_default_scheduler_name(), wrong])
        """)
    assert [name for name in found if name in own] == own and "kxfs" in found
    assert default == own[0] == "local_docker"
    assert not wrong


def test_commands_know_all_schedulers(torchx, environment):
    """The commands know all schedulers. (Without ray, TorchX 0.7.0 itself fails to list the options
    of all.)"""
    assert "log_dir" in torchx(None, "runopts", "local_cwd").stdout
    assert "queue" in torchx(None, "runopts", "kubernetes").stdout
    if environment.version != "0.7.0":
        assert "No module named 'torchx.schedulers.ray_scheduler'" in torchx(None, "runopts").stdout


def test_scheduler_of_torchx_runs(torchx, work):
    torchx(None, "run", "-s", "local_cwd", "-cfg", f"log_dir={work}/logs", "utils.sh", "touch", "there")
    assert (work / "there").exists()


def test_configure(torchx):
    """TorchX's own template of .torchxconfig has our section."""
    text = torchx(None, "configure", "--print", "--all", "--schedulers", "kxfs,local_cwd").stdout
    assert "[kxfs]" in text and "[local_cwd]" in text and re.search(r"^image_repo = None", text, re.M)


def test_options_are_those_of_kxfs(api):
    """The options are exactly the run options of kxfs(1). `cwd`, which is for local jobs, is in
    appdef(5)."""
    page = (ROOT / "docs/kxfs.1").read_text()
    section = page[page.index("\n.Ss Run options\n"):page.index("\n.Ss Generic options\n")]
    items = "\n".join(re.findall(r"^\.It (.*)$", section, re.M))
    theirs = set(re.findall(r"Cm (\w+)", items)) - {"quiet", "validate_spec"}
    ours = set(api(None, """
        from torchx_kxfs.options import OF_JOBS
        answer(list(OF_JOBS))
        """))
    assert ours | {"image_repo"} == theirs | {"cwd"}
    assert "Cm cwd" in (ROOT / "docs/appdef.5").read_text()


def test_types(environment, tmp_path):
    """mypy reports nothing, with the types of TorchX's newest version."""
    if environment.version != "nightly":
        return
    p = run([str(environment.python), "-m", "mypy", "--cache-dir", str(tmp_path), "-p", "torchx_kxfs"],
            cwd=SOURCE, check=False)
    assert not re.findall(r"^torchx_kxfs/.*", p.stdout, re.M) and "Found" not in p.stdout, p.stdout
