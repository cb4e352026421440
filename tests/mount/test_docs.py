# SPDX-License-Identifier: MIT
"""Checks that documents are true: the examples of README, the options and the tree in the manuals, the examples of
appdef(5), and the quickstart."""

import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess

import pytest
import yaml
from harness import ROOT, TOOL_PATH, Job, alive, app, base_env, err_of, is_mounted, marked_pids, popen, rmdir, run, wait_for
from starting import lock_file

# --- Examples, pasted block by block into a shell ---------------------------------------------
# The examples of README.md and of pages in docs/, pasted block by block into one shell. Comments below a command show
# its expected output.

BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.M | re.S)
# kxfs prints this if the machine is busy for some seconds during the start.
LATE = re.compile(r"^kxfs: the list of jobs of \S+ has not arrived yet; kxfs keeps trying(: .*)?\n", re.M)
# the parts that vary: suffixes of ids, times
VARYING = [(re.compile(r"-[bcdfghjklmnpqrstvwxz][bcdfghjklmnpqrstvwxz0-9]{8,13}\b"), "-SUFFIX"),
           (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "TIME")]


def printed(block):
    """Return the output that BLOCK shows."""
    return "".join(line.removeprefix("# ") for line in block.splitlines(keepends=True) if line.startswith("# "))


def matches(expected, got):
    """True if GOT is the output that a document shows as EXPECTED. `...` stands for any text within a line; a line
    that is only `...` stands for any lines."""
    for pattern, word in VARYING:
        expected, got = pattern.sub(word, expected), pattern.sub(word, got)
    expected, got = (re.sub(r"\b {2,}", "  ", text) for text in (expected, got))  # columns are as wide as the ids in them
    regex = re.escape(expected)
    regex = re.sub(r"(?m)^\\\.\\\.\\\.\\\n", "(?s:.*)", regex)
    regex = regex.replace(r"\.\.\.", "[^\n]*")
    return re.fullmatch(regex, got) is not None


class Shell:
    """An interactive bash, to which a test pastes one command after the other."""

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
    """Return two texts: README.md without the section about clusters, and that section."""
    text = (ROOT / "README.md").read_text()
    before, rest = text.split("## On a cluster\n")
    cluster, after = rest.split("\n## ", 1)
    return before + after, cluster


def train_yaml():
    """Return the file train.yaml that README shows."""
    return readme()[0].split("cat > ~/train.yaml <<'END'\n")[1].split("END\n")[0]


def play(kx, text, first="", **env):
    """Paste the examples in TEXT into a shell whose home has README's train.yaml. There, `kxfs` is KX's program with
    KX's state directory. FIRST has commands to run before. Return README's mount point; KX unmounts it if the
    examples don't."""
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
            if "umount " in block:  # a user would paste the next block later
                wait_for(lambda: not alive(int(lock_file(kx.state)["pid"])), what="the end of the daemon")
    finally:
        shell.close()
    return kx.mnt


# --- Documents --------------------------------------------------------------------------------


def test_matching():
    assert matches("a\n...\nz\n", "a\nb\nc\nz\n") and matches("x-qwrtz2n4k7s8d0\n", "x-v1b2n3m4k5h6f7\n")
    assert not matches("a\n", "a\nb\n") and not matches("a ... c\n", "a b\n")
    assert printed("one\n# out\ntwo\nthree\n# put\n") == "out\nput\n"


@pytest.mark.parametrize("first", ["", f"mkdir kx; kxfs local: kx; cp {ROOT}/contrib/examples/hello.yaml kx/submit/"],
                         ids=["alone", "after quickstart"])
def test_readme(make_kx, first):
    """All examples of README.md except those for a cluster, in order, in one shell. They also work while a mount of the
    quickstart runs a job."""
    kx = make_kx(start=False)  # for its directories and its clean-up only
    mount_point = play(kx, readme()[0], first)
    wait_for(lambda: not is_mounted(mount_point) and not marked_pids(), what="the last umount")


def test_scripts(make_kx):
    """Every example of docs/scripts.md."""
    kx = make_kx(start=False)
    mount_point = play(kx, (ROOT / "docs/scripts.md").read_text())
    wait_for(lambda: not is_mounted(mount_point) and not marked_pids(), what="the last umount")


def block_of_scripts(word):
    """Return the block of docs/scripts.md that contains WORD."""
    [block] = [block for block in BLOCK.findall((ROOT / "docs/scripts.md").read_text()) if word in block]
    return block


def test_scripts_with_a_time_limit(kx):
    """The example ends at its time limit, even if the job continues. If the file is refused, it
    does not show the output of another job."""
    home = kx.base / "home"
    home.mkdir()
    (home / "kx").symlink_to(kx.mnt)
    before, limited = block_of_scripts("grep -qx SUCCEEDED \"$file.job/wait\" && echo"), block_of_scripts("timeout 600")

    def paste(train):
        (home / "train.yaml").write_text(app("echo first"))
        script = f"{before}echo {shlex.quote(train)} > ~/train.yaml\n{limited.replace('600', '2')}"
        return run(["bash", "-c", script], env={**kx.env(), "HOME": str(home)}, check=False, timeout=60).stdout

    assert "first" not in paste("[")
    assert paste(app("echo second; sleep 1000")).endswith("main/0 second\n")


def test_scripts_remove_only_jobs(tmp_path):
    """The example that cancels running jobs removes nothing else, also if the path of the home contains a space."""
    [line] = [line for line in block_of_scripts("rm -r ~/kx/jobs/*").splitlines() if "RUNNING" in line]
    home = tmp_path / "home of ada"
    for name, state in (("a", "RUNNING"), ("b", "FAILED")):
        (home / "kx/jobs" / name).mkdir(parents=True)
        (home / "kx/jobs" / name / "state").write_text(f"{state}\n")
    (tmp_path / "home").mkdir()
    run(["bash", "-c", line], cwd=tmp_path, env={"HOME": str(home)}, check=False)
    assert (tmp_path / "home").exists() and os.listdir(home / "kx/jobs") == ["b"]


def test_readme_shows_all_on_its_first_screen():
    """The first screen of README shows the purpose, the picture, and both commands."""
    first_screen = (ROOT / "README.md").read_text().splitlines()[:18]
    wanted = ("`cp` a YAML file, and a batch job runs", "<picture>", "    contrib/quickstart", "    tests/run")
    assert [line for want in wanted for line in first_screen if line.startswith(want)][3:]


@pytest.mark.parametrize("page", ["README.md", "docs/scripts.md", "docs/cluster.md"])
def test_examples_can_be_pasted(page):
    """No block shows a prompt, because a paste would include it."""
    text = (ROOT / page).read_text()
    assert text.count("```") == 2 * len(BLOCK.findall(text)) > 2
    assert not [line for block in BLOCK.findall(text) for line in block.splitlines() if line.startswith(("$ ", "> "))]


def test_links():
    """All files to which README, CONTRIBUTING and docs/ link exist. tests/lint/test_docs.py checks the paths that are named
    without a link."""
    for name in ("README.md", "CONTRIBUTING.md", *(p.relative_to(ROOT) for p in (ROOT / "docs").glob("*.md"))):
        text = (ROOT / name).read_text()
        for target in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (ROOT / name).parent.joinpath(target).exists(), f"{name}: {target}"


# --- man pages ---------------------------------------------------------------------------------


def man(name):
    """Return the manual page NAME as text."""
    out = run(["man", "--nj", "--nh", "-l", "-Tutf8", str(ROOT / "docs" / name)], env={"MANWIDTH": "120"}).stdout
    return re.sub(r".\x08|\x1b\[[0-9;]*m", "", out).replace("‐", "-").replace("−", "-")


def test_tree(kx):
    """kxfs-layout(5) and .kxfs/help name every file of a mount."""
    job = kx.submit(app("[ -e again ] || { touch again; exit 1; }", name="all", max_retries=1), "all.yaml")
    job.finish()
    assert err_of(kx.write, "submit/bad.yaml", "[") == "EINVAL"
    other = kx.submit(app("true"))
    other.finish()
    rmdir(other.dir)
    names = set()
    for where, dirs, files in os.walk(kx.mnt):
        names |= set(dirs) | set(files)
    names = {re.sub(r"^main-0", "ROLE-K", re.sub(r"^(all|app)-\w+$", "ID", n)) for n in names}
    names -= {"all.yaml", "bad.yaml", "all.yaml.job", "bad.yaml.error"} | {n for n in names if n.startswith("app-")}
    assert {"state", "log.0", "ID", "ROLE-K"} <= names
    for title, text in (("kxfs-layout(5)", man("kxfs-layout.5")), (".kxfs/help", kx.read(".kxfs", "help"))):
        missing = {n for n in names if not re.search(rf"(?<![\w.]){re.escape(n)}(?![\w])", text)}
        assert not missing, f"{title} lacks {missing}"
        assert re.search(r"\.job\b", text) and re.search(r"\.error\b", text), title


def blocks_of_man_page(path):
    """Return the literal blocks of a manual page: .Bd of mdoc, .EX and .nf of man."""
    source = pathlib.Path(path).read_text()
    found = re.findall(r"^\.(?:Bd [^\n]*|EX|nf)\n(.*?)^\.(?:Ed|EE|fi)\n", source, re.M | re.S)
    return [unescape(block) for block in found]


def unescape(text):
    lines = [line for line in text.splitlines() if not line.startswith(('.\\"', ".Pp"))]
    text = "\n".join(re.sub(r"^\\&", "", line) for line in lines) + "\n"
    return text.replace("\\-", "-").replace("\\(aq", "'").replace("\\(dq", '"').replace("\\e", "\\").replace(
        "\\(ti", "~").replace("\\(ha", "^").replace("\\&", "")


def test_appdef_examples(kx):
    """kxfs accepts the complete AppDefs among the examples of appdef(5)."""
    blocks = [b for b in blocks_of_man_page(ROOT / "docs/appdef.5")
              if re.search(r"^roles:", b, re.M) and re.search(r"^name:", b, re.M)]
    assert blocks, "appdef(5) has no whole example"
    for n, block in enumerate(blocks):
        try:
            job = kx.submit(block, f"example-{n}.yaml")
        except OSError:
            raise AssertionError(kx.read("submit", f"example-{n}.yaml.error") + "\n" + block) from None
        rmdir(job.dir)


@pytest.mark.parametrize("path", sorted((ROOT / "contrib/examples").glob("*.yaml")), ids=lambda p: p.name)
def test_examples(kx, path):
    assert isinstance(kx.submit(path.read_text(), path.name), Job)


# --- the quickstart -----------------------------------------------------------------------------


@pytest.mark.plain
def test_quickstart(make_kx):
    """contrib/quickstart runs unchanged, twice, and the command that it prints unmounts. This works
    even if the usual state directory belongs to another version."""
    kx = make_kx(start=False)
    directory = kx.base / "home/ada's kx"
    kx.mnt = directory
    build = pathlib.Path(os.environ.get("KXFS_BUILD_DIR", ROOT / "build-test"), "quickstart")
    env = {**base_env(), "HOME": str(kx.base / "home"), "KXFS_BUILD_DIR": str(build), "TMPDIR": str(kx.base),
           "XDG_STATE_HOME": str(kx.base / "home/states, of mine")}
    usual = kx.base / "home/states, of mine/kxfs/local"
    usual.mkdir(parents=True, mode=0o700)
    (usual / "version").write_text("kxfs state 1\n")
    for attempt in range(2):
        out = run([str(ROOT / "contrib/quickstart"), str(directory)], env=env, timeout=600).stdout
        assert ("mounted already" in out) == (attempt == 1)
        steps = ["== Building kxfs", "Packages that it needs", "The program (", "== Mounting", "== Submitting"]
        assert sorted(steps, key=out.index) == steps, out
        assert re.search(r"^round 20 of 20: pi is about 3\.1", out, re.M), out
        assert re.search(r"\$ cat '.*'/wait\nSUCCEEDED\n", out), out
        assert re.search(r"^quickstart-\w+ +RUNNING ", out, re.M), out
        assert len(os.listdir(directory / "jobs")) == attempt + 1
        assert is_mounted(directory)
    [line] = [line.strip() for line in out.splitlines() if line.strip().startswith(("umount", "fusermount3"))]
    run(line)
    # Even after the unmount, the daemon writes to its state directory until it exits.
    wait_for(lambda: not is_mounted(directory) and not marked_pids(), what="the umount")
    shutil.rmtree(kx.base / "home")


def test_settings_of_jupyter():
    """The notebook example has the settings that Jupyter needs in a mount. docs/pods.md explains them."""
    pod = yaml.safe_load((ROOT / "contrib/kubernetes/notebook.yaml").read_text())
    args = pod["spec"]["containers"][0]["args"]
    page = (ROOT / "docs/pods.md").read_text()
    rows = re.findall(r"^\| `(File\w+\.\w+=\S+)` \| .{30,} \|$", page, re.M)
    assert args == ["start-notebook.py", *(f"--{row}" for row in rows)]
    assert [row.partition("=")[0].partition(".")[2] for row in rows] == ["delete_to_trash", "always_delete_dir", "checkpoint_dir"]


def test_sidecar_ends_at_sigterm(tmp_path):
    """The script that copies the archive ends at SIGTERM, while rclone runs and between two copies.
    SIGTERM usually does not end process 1 of a container, which this script is."""
    for seconds in ("1000", "0"):
        patch = yaml.safe_load((ROOT / "contrib/kubernetes/s3/sidecar.yaml").read_text())
        [container] = patch["spec"]["template"]["spec"]["containers"]
        begun = tmp_path / f"begun-{seconds}"
        (tmp_path / "rclone").write_text(f"#!/bin/sh\ntouch {begun}\nexec sleep {seconds}\n")
        (tmp_path / "rclone").chmod(0o755)
        with popen(["unshare", "--pid", "--fork", "--kill-child", *container["command"]],
                   env={"PATH": f"{tmp_path}:{TOOL_PATH}"}) as process:
            wait_for(begun.exists)
            [shell] = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            try:
                os.kill(int(shell), signal.SIGTERM)
                assert process.wait(timeout=20) == 0
            finally:
                process.kill()
