# SPDX-License-Identifier: MIT
"""docs/releasing.md, tried: the commands of its steps, in their order, in a fresh clone of this tree.

Stand-ins are: for whom it is pushed to, a repository of the test's; for who signs, a key of the test's; for what other
stages of tests/run do (`tests/run`, and `contrib/package all`, here `source` alone), nothing.
"""

import os
import re
import subprocess
import tarfile

import pytest
from harness import ROOT

VERSION, DAY = "99.1.2", "2031-02-03"
STEPS = re.search(r"^## The steps\n(.*)^For the next version", (ROOT / "docs/releasing.md").read_text(), re.M | re.S)[1]
COMMANDS = [c.replace("VERSION", VERSION) for c in re.findall(r"`((?:git|gpg|contrib/packages?|tests/run) [^`]*)`", STEPS)]
OTHERS_DO = {"tests/run all": "", "tests/run package": "", "contrib/package all": "contrib/package source"}


@pytest.fixture
def sh(tmp_path):
    """Run a command as a maintainer does, in a directory; what it has said."""
    env = {**os.environ, "GNUPGHOME": str(tmp_path / "gnupg"), "GIT_CONFIG_GLOBAL": str(tmp_path / "gitconfig"), "EMAIL": "m@example.org",
           "GIT_AUTHOR_NAME": "M", "GIT_COMMITTER_NAME": "M"}
    (tmp_path / "gnupg").mkdir(mode=0o700)

    def run(command, cwd):
        p = subprocess.run(["bash", "-euc", command], cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, check=False, timeout=900)
        assert p.returncode == 0, f"{command}\n{p.stdout}"
        return p.stdout

    run("gpg --batch --passphrase '' --quick-gen-key 'M <m@example.org>' default default never", tmp_path)
    run("git config --global safe.directory '*'; git config --global user.email m@example.org", tmp_path)
    yield run
    run("gpgconf --kill gpg-agent", tmp_path)


def test_steps(sh, tmp_path):
    sh(f"git clone -q --bare {ROOT} published && git clone -q published tree && git -C tree checkout -q -B main", tmp_path)
    tree = tmp_path / "tree"
    (tree / "meson.build").write_text(re.sub(r"^    version: '.*',$", f"    version: '{VERSION}',",
                                             (tree / "meson.build").read_text(), flags=re.M))
    (tree / "CHANGELOG.md").write_text(re.sub(r"^## .*$", f"## {VERSION} - {DAY}", (tree / "CHANGELOG.md").read_text(), count=1,
                                              flags=re.M))
    sums = []
    for command in COMMANDS:
        for whole, instead in OTHERS_DO.items():
            command = command.replace(whole, instead)
        if "contrib/package " not in command:
            sh(command or ":", tree)
            continue
        for name in ("first", "second"):  # two clones of the tag, as the page says
            sh(f"git clone -q --branch v{VERSION} published {name}", tmp_path)
            sh(command, tmp_path / name)
            sums.append((tmp_path / name / "build-package/SHA256SUMS").read_text())
            tree = tmp_path / name
    assert sums[0] == sums[1] and f"kxfs-{VERSION}.tar.xz" in sums[0]
    assert "Good signature" in sh(f"git tag -v v{VERSION}", tmp_path / "first")
    assert "Good signature" in sh("cd build-package && gpg --verify SHA256SUMS.asc SHA256SUMS && sha256sum -c SHA256SUMS", tree)
    with tarfile.open(tree / f"build-package/kxfs-{VERSION}.tar.xz") as tar:
        assert {sh(f"date -u -d @{member.mtime} +%F", tree).strip() for member in tar.getmembers()[:3]} == {DAY}
