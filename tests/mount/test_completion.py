# SPDX-License-Identifier: MIT
"""Shell completion, typed as a user does: the options of --help, the sources of the kubeconfig, directories."""

import os
import pathlib
import pty
import re
import select
import subprocess
import time

import pytest
from harness import ROOT, TOOL_PATH, base_env, run

KUBECONFIG = """
contexts:
- context: {cluster: c, user: u, namespace: training}
  name: prod
- context: {cluster: c, user: u}
  name: arn:eks:1/test
"""
KIND_FILES = {f"{p.stem}:" for p in (ROOT / "share/kinds").glob("*.yaml")}
SOURCES = KIND_FILES | {"local:", "volcano:", "mcad:", "appwrapper:", "prod/training", "arn:eks:1/test/default"}


@pytest.fixture
def shell(binary, tmp_path):
    """A directory with a mount point and a kubeconfig, and the environment to complete in."""
    (tmp_path / "mnt").mkdir()
    (tmp_path / "config").write_text(KUBECONFIG)
    env = {"PATH": f"{os.path.dirname(binary)}:{TOOL_PATH}", "KUBECONFIG": str(tmp_path / "config"), "HOME": str(tmp_path)}
    return tmp_path, env


BUILT = pathlib.Path(os.environ.get("KXFS_BINARY", ROOT / "build/fs/kxfs")).resolve().parents[1]
SCRIPTS = BUILT / "contrib/completion"


def heads(binary):
    return re.findall(r"^  (\S.*?)  +\S", run([binary, "--help"]).stdout, re.M)


def words(binary):
    """The completed words after -o: a word that takes a value ends with '='."""
    return {re.sub(r"=.*", "=", h) for h in heads(binary) if not h.startswith("-")}


def choices(binary):
    """{"cancel=": {"own", ...}} for the options whose values are words."""
    return {h[:h.index("=") + 1]: set(h[h.index("=") + 1:].split("|")) for h in heads(binary) if "|" in h}


def flags(binary):
    return {f for h in heads(binary) if h.startswith("-") for f in re.findall(r"--?\w[\w-]*=?", h)}


def test_list_sources(binary, shell):
    _, env = shell
    assert set(run([binary, "--list-sources"], env=env).stdout.split()) == SOURCES
    p = run([binary, "--list-sources", "-o", "kubeconfig=/nowhere"], env=env, check=False)
    assert p.returncode == 1 and p.stderr == "kxfs: kubeconfig /nowhere: No such file or directory\n"
    assert set(run([binary, "--list-sources"], env={**env, "KUBECONFIG": ""}).stdout.split()) == {
        s for s in SOURCES if s.endswith(":")}
    assert "too many arguments" in run([binary, "--list-sources", "x"], check=False).stderr


def test_bash(binary, shell):
    base, env = shell
    script = f"""source {SCRIPTS}/kxfs
compopt() {{ :; }}
cd {base}
t() {{ COMP_LINE="$1" COMP_POINT=${{#1}} COMPREPLY=(); _kxfs; printf '%s\\n' "${{COMPREPLY[@]}}"; echo .; }}
"""

    def complete(line):
        out = run(script + f"t '{line}'", env=env).stdout
        return set(out.split("\n")) - {".", ""}

    assert complete("kxfs -o ") == words(binary)
    assert complete("kxfs -") == flags(binary)
    assert complete("kxfs -o ro,st") == {"ro,state="}
    for name, values in choices(binary).items():
        assert complete(f"kxfs -o {name}") == values
        # Readline replaces the text after the last '='.
        assert complete(f"kxfs -o ro,{name}") == values
    assert complete("kxfs ") == SOURCES | {"doctor", "capture"} and complete("kxfs pr") == {"prod/training"}
    assert complete("kxfs volcano:pr") == {"prod/training"}
    assert complete("kxfs lo") == {"local:"} and complete("kxfs -o ro lo") == {"local:"}
    assert complete("kxfs mn") == {"mnt"}
    assert complete("kxfs local: mn") == {"mnt"} == complete("kxfs -o ro prod/training mn")
    assert complete("kxfs doctor pr") == {"prod/training"} and complete("kxfs doctor ") == SOURCES
    assert complete("kxfs capture ") == SOURCES
    assert complete("kxfs --dry-run=con") == {"config"}
    assert complete("kxfs -o kubeconfig=con") == {"config"} and complete("kxfs -o state=m") == {"mnt"}


def test_fish(binary, shell):
    base, env = shell

    def complete(line):
        out = run(["fish", "--no-config", "-c", f"source {SCRIPTS}/kxfs.fish; complete -C '{line}'"], env=env,
                  cwd=base).stdout
        return {row.split("\t")[0] for row in out.splitlines()}

    assert complete("kxfs -o ") == words(binary)
    # fish adds the value to a long flag itself.
    assert {f.rstrip("=") for f in complete("kxfs -") if len(f) < 3 or f.startswith("--")} == {
        f.rstrip("=") for f in flags(binary)}
    assert complete("kxfs -o ro,st") == {"ro,state="}
    for name, values in choices(binary).items():
        assert complete(f"kxfs -o ro,{name}") == {f"ro,{name}{value}" for value in values}
    assert complete("kxfs ") >= SOURCES | {"doctor", "capture"}
    assert complete("kxfs doctor pr") == {"prod/training"} == complete("kxfs capture pr")
    assert complete("kxfs volcano:pr") == {"volcano:prod/training"}
    assert complete("kxfs local: mn") == {"mnt/"}


class Zsh:
    """zsh on a terminal, since its completion only works there."""

    def __init__(self, binary, base, env):
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(["zsh", "-f", "-i"], stdin=slave, stdout=slave, stderr=slave, cwd=base,
                                        env=base_env(**env, TERM="dumb", COLUMNS="4000"), start_new_session=True)
        os.close(slave)
        self.ask(f"stty -echo columns 4000; PS1=; unsetopt zle_bracketed_paste; fpath=({SCRIPTS} $fpath); "
                 f"autoload -Uz compinit; compinit -u -D; LISTMAX=0; zstyle ':completion:*' list-separator '|'; "
                 "show() { print -r -- \"<$BUFFER>\"; BUFFER=; zle reset-prompt }; zle -N show; bindkey '^X' show; "
                 "bindkey '^I' complete-word; echo re''ady\n", "ready")

    def ask(self, text, end):
        os.write(self.master, text.encode())
        got, limit = "", time.monotonic() + 60
        while end not in got:
            assert time.monotonic() < limit, got
            if select.select([self.master], [], [], 1)[0]:
                got += os.read(self.master, 65536).decode(errors="replace")
        return got

    def complete(self, line):
        """LINE after Tab."""
        return re.search(r"<(.*?)>", self.ask(f"{line}\t\x18", ">"), re.S)[1]

    def end(self):
        self.process.kill()
        self.process.wait()
        os.close(self.master)


def test_zsh(binary, shell):
    base, env = shell
    text = (SCRIPTS / "_kxfs").read_text()
    assert all(f"'{w.rstrip('=')}[" in text for w in words(binary))
    zsh = Zsh(binary, base, env)
    try:
        for line, completed in {
            "kxfs -o spo": "kxfs -o spool_limit=",
            "kxfs -o ro,capt": "kxfs -o ro,capture=",
            "kxfs -o ro,cancel=n": "kxfs -o ro,cancel=none,",
            "kxfs --dr": "kxfs --dry-run=",
            "kxfs --dry-run=con": "kxfs --dry-run=config",
            "kxfs loc": "kxfs local:",
            "kxfs prod": "kxfs prod/training",
            "kxfs doc": "kxfs doctor",
            "kxfs doctor do": "kxfs doctor do",
            "kxfs doctor prod": "kxfs doctor prod/training",
            "kxfs capture prod": "kxfs capture prod/training",
            "kxfs volcano:pr": "kxfs volcano:prod/training",
            "kxfs local: mn": "kxfs local: mnt/",
        }.items():
            assert zsh.complete(line).rstrip() == completed, line
    finally:
        zsh.end()
