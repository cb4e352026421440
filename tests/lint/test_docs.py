# SPDX-License-Identifier: MIT
"""What the documents for developers name exists: files, folders, rules."""

import re
import runpy
import subprocess
import sys

import pytest
import yaml
from files import ALL, ROOT, name_of

sys.path += [str(ROOT / "tests" / name) for name in ("bench", "replay")]
import peers  # noqa: E402

PAGES = ["CONTRIBUTING.md", "README.md", "SECURITY.md",
         *sorted(name_of(path) for folder in ("docs", "tests") for path in (ROOT / folder).rglob("*.md"))]
WORDS_MAX = 30000  # for all documents together, without the bars of tables
PATH = re.compile(r"`((?:spec|backend|fs|share|tests|contrib|docs)/[\w./-]+)`")


@pytest.mark.parametrize("page", PAGES)
def test_named_paths_exist(page):
    named = set(PATH.findall((ROOT / page).read_text()))
    missing = sorted(path for path in named if not (ROOT / path).exists() and not path.startswith("fs/kxfs"))
    assert not missing


def test_each_fact_says_what_copes_with_it():
    """A fact that the code handles names the file. Other facts are only described."""
    text = (ROOT / "docs/facts.md").read_text()
    facts = re.split(r"^### ", text, flags=re.M)[1:]
    assert len(facts) > 20
    without = [fact.split("\n")[0] for fact in facts if not PATH.search(fact)]
    assert without == ["A rotated log loses the part of a line for its followers"]


def test_version_is_in_one_place():
    """The version is in meson.build. CHANGELOG.md starts with its changes. Nothing else that
    packages are built from contains it."""
    version = re.search(r"^    version: '(.*)',$", (ROOT / "meson.build").read_text(), re.M)[1]
    newest = re.search(r"^## (\S+) - (unreleased|\d{4}-\d\d-\d\d)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert newest and newest[1] == version
    named = [p for p in (ROOT / "contrib").rglob("*") if p.is_file() and "torchx" not in p.parts
             and version.encode() in p.read_bytes()]
    assert not named


def test_table_of_peers_is_what_the_benchmark_prints():
    """tests/bench/README.md has the benchmark's rows and columns. No cell is empty if the benchmark
    measures it."""
    text = (ROOT / "tests/bench/README.md").read_text()
    lines = re.search(r"^<!-- peers -->\n(.*?)^<!-- end of peers -->$", text, re.M | re.S)[1].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert [row[0] for row in cells[2:]] == list(peers.ROWS)
    assert cells[0] == ["what", "kxfs", *peers.TOOLS]
    assert all(row[1] and any(row[2:]) for row in cells[2:])


def test_stories_are_told():
    """docs/proof.md describes each story of tests/soak/run. The tests that print their counts
    exist."""
    stories = runpy.run_path(str(ROOT / "tests/soak/run"))["STORIES"]
    told = re.findall(r"\*\*([\w-]+)\*\*", (ROOT / "docs/proof.md").read_text())
    assert sorted(told) == sorted(stories)
    for test in (test for story in stories.values() for test in story.tests.split()):
        path, _, name = test.partition("::")
        assert (ROOT / path).exists() and (not name or f"def {name}(" in (ROOT / path).read_text()), test


def test_needed_versions_agree():
    """The library versions that the build requires, those of the packages and those of
    docs/install.md are the same."""
    meson = (ROOT / "meson.build").read_text()
    wanted = dict(re.findall(r"dependency\('([\w-]+)', version: '>= ([\d.]+)'[,)]", meson))
    assert set(wanted) == {"fuse3", "json-c", "libcurl", "libuv"}
    wanted["meson"] = re.search(r"meson_version: '>= ([\d.]+)'", meson)[1]
    spec = dict(re.findall(r"^BuildRequires: +(?:pkgconfig\()?([\w-]+)\)? >= ([\d.]+)$",
                           (ROOT / "contrib/rpm/kxfs.spec").read_text(), re.M))
    assert spec == wanted
    names = {"libfuse3-dev": "fuse3", "libjson-c-dev": "json-c", "libcurl4-openssl-dev": "libcurl", "libuv1-dev": "libuv"}
    deb = dict(re.findall(r"^ ([\w-]+) \(>= ([\d.]+)\),$", (ROOT / "contrib/debian/control").read_text(), re.M))
    assert {names.get(name, name): version for name, version in deb.items()} == wanted
    said = re.search(r"^Needed are (.*?), and gcc", (ROOT / "docs/install.md").read_text(), re.M | re.S)[1]
    needed = dict(part.split(" ") for part in re.split(r",\s+", said) if " " in part)
    assert {"fuse3" if name == "libfuse" else name: v for name, v in needed.items() if name != "libyaml"} == wanted


def test_first_change_fits(tmp_path):
    """The diffs of docs/first-change.md apply to the source, and none of them is already applied."""
    diffs = re.findall(r"^```diff\n(.*?)^```$", (ROOT / "docs/first-change.md").read_text(), re.M | re.S)
    assert len(diffs) > 5
    for path in re.findall(r"^\+\+\+ b/(.*)$", "".join(diffs), re.M):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes((ROOT / path).read_bytes())
    subprocess.run(["patch", "-p1", "-N", "-F0"], cwd=tmp_path, input="".join(diffs), text=True, check=True)


def test_kinds_are_documented():
    """Each kind of share/kinds/ is documented where users look for it."""
    for path in (ROOT / "share/kinds").glob("*.yaml"):
        name, kind = path.stem, re.search(r"kind: (\w+)", path.read_text())[1]
        for page, text in (("docs/kxfs.1", f"{name}\\&:"), ("docs/kxfs-status.5", name), ("docs/versions.md", kind)):
            assert re.search(rf"\b{re.escape(text)}", (ROOT / page).read_text()), f"{page} has no {text}"


def test_ready_kinds_are_compared():
    """docs/versions.md has version, parts and roles of each kind that is submitted as a ready manifest, and of no other."""
    items = {}
    for names, version, text in re.findall(r"^- \*\*(.*?) (v\w+)\*\*(.*?)(?=^- |\Z)", (ROOT / "docs/versions.md").read_text(), re.M | re.S):
        items.update((name, (version, text)) for name in names.split(", "))
    files = [yaml.safe_load(path.read_text()) for path in (ROOT / "share/kinds").glob("*.yaml") if path.stem not in ("job", "jobset")]
    kinds = {kind["object"]["kind"]: kind for kind in files}
    assert kinds.keys() == items.keys()
    for name, kind in kinds.items():
        version, text = items[name]
        said = re.search(r"Parts: (.*?)\. ", text)
        parts = {part["kind"].lower() for part in kind.get("parts", []) if "named" not in part}
        assert version == kind["object"]["api"].split("/")[1]
        assert {part.split()[-1].lower() for part in said[1].split(", ")} == parts if said else not parts, name
        assert ("may grow" in text) == any("grows" in role for role in kind["roles"]), name


def test_documents_are_short():
    """If a page makes the documents together too long, shorten another one."""
    words = {name_of(path): len(re.findall(r"\S*\w\S*", path.read_text())) for path in ALL
             if path.suffix in (".md", ".1", ".5", ".7") and ".pytest_cache" not in path.parts}
    assert len(words) > 35
    assert sum(words.values()) <= WORDS_MAX, sorted(words.items(), key=lambda item: -item[1])
