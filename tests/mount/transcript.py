# SPDX-License-Identifier: MIT
"""The examples of README.md and of pages in docs/, pasted block by block into one shell. The comments after the
commands are the expected output."""

import re
import subprocess

from harness import ROOT, TOOL_PATH, alive, wait_for
from starting import lock_file

BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.M | re.S)
# kxfs prints this if the machine is busy for some seconds while it starts.
LATE = re.compile(r"^kxfs: the list of jobs of \S+ has not arrived yet; still trying(: .*)?\n", re.M)
# the parts that vary: suffixes of ids, times
VARYING = [(re.compile(r"-[bcdfghjklmnpqrstvwxz][bcdfghjklmnpqrstvwxz0-9]{8,13}\b"), "-SUFFIX"),
           (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "TIME")]


def printed(block):
    """Return the expected output of BLOCK."""
    return "".join(line.removeprefix("# ") for line in block.splitlines(keepends=True) if line.startswith("# "))


def matches(expected, got):
    """True if GOT is what README shows. `...` stands for anything within a line, alone for any lines."""
    for pattern, word in VARYING:
        expected, got = pattern.sub(word, expected), pattern.sub(word, got)
    expected, got = (re.sub(r"\b {2,}", "  ", text) for text in (expected, got))  # columns, as wide as ids are
    regex = re.escape(expected)
    regex = re.sub(r"(?m)^\\\.\\\.\\\.\\\n", "(?s:.*)", regex)
    regex = regex.replace(r"\.\.\.", "[^\n]*")
    return re.fullmatch(regex, got) is not None


class Shell:
    """An interactive bash: one process, one command after the other."""

    END = "--end-of-command--"

    def __init__(self, env, cwd):
        self.proc = subprocess.Popen(["/bin/bash", "--norc"], stdin=subprocess.PIPE, cwd=cwd, env=env,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, command):
        self.proc.stdin.write(f"{command}\necho {self.END}$?\n")
        self.proc.stdin.flush()
        out = ""
        while True:
            line = self.proc.stdout.readline()
            assert line, f"the shell ended in: {command}\n{out}"
            before, found, _ = line.partition(self.END)
            out += before
            if found:
                return out

    def close(self):
        self.proc.stdin.close()
        self.proc.wait(timeout=60)
        self.proc.stdout.close()


def readme():
    """Return README.md without, and only, the section about clusters."""
    text = (ROOT / "README.md").read_text()
    before, rest = text.split("## On a cluster\n")
    cluster, after = rest.split("\n## ", 1)
    return before + after, cluster


def train_yaml():
    """Return the file that README shows."""
    return readme()[0].split("cat > ~/train.yaml <<'END'\n")[1].split("END\n")[0]


def play(kx, text, first="", **env):
    """Paste the examples in TEXT, at home, with README's train.yaml there; `kxfs` is KX's program and state. FIRST:
    commands to run before. Return README's mount point, which KX ends if the examples do not."""
    home, bin_dir = kx.base / "home", kx.base / "bin"
    for path in (home, bin_dir):
        path.mkdir()
    kx.mnt = home / "kx"
    (bin_dir / "kxfs").write_text(f"#!/bin/sh\nexec {kx.binary} -o state={kx.state} \"$@\"\n")
    (bin_dir / "kxfs").chmod(0o755)
    (home / "train.yaml").write_text(train_yaml())
    shell = Shell({**kx.env(), "HOME": str(home), "PATH": f"{bin_dir}:{TOOL_PATH}",
                   "TMPDIR": str(kx.base), **env}, home)
    blocks = BLOCK.findall(text)
    assert blocks
    try:
        if first:
            shell.run(first)
        for block in blocks:
            got = LATE.sub("", shell.run(block))
            assert matches(printed(block), got), f"{block}\nprinted\n{got}"
            if "umount " in block:  # who pastes is slower than a daemon that ends
                wait_for(lambda: not alive(int(lock_file(kx.state)["pid"])), what="the end of the daemon")
    finally:
        shell.close()
    return kx.mnt
