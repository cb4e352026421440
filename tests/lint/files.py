# SPDX-License-Identifier: MIT
"""Lists the source files. It does not use git, because the tests also run on an unpacked archive.
"""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("spec", "backend", "fs")
BINARY = {".png", ".gz", ".bin"}


def all_files():
    found = []
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        if parts[0] == ".git" or parts[0].startswith("build") or "__pycache__" in parts:
            continue
        if path.is_file() and not path.is_symlink() and path.suffix not in BINARY | {".pyc"}:
            found.append(path)
    return found


def is_text(path):
    if path.name == "corpus.jsonl":
        return False
    try:
        path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return False
    return True


def is_script(path):
    with path.open("rb") as f:
        head = f.readline(80)
    return head.startswith(b"#!") and (b"sh" in head)


def name_of(path):
    return path.relative_to(ROOT).as_posix()


ALL = all_files()
TEXT_FILES = [p for p in ALL if is_text(p)]
HEADERS = {f: sorted((ROOT / f).rglob("*.h")) for f in FOLDERS}
SOURCES = {f: sorted((ROOT / f).rglob("*.c")) for f in FOLDERS}
C_FILES = [p for f in FOLDERS for p in HEADERS[f] + SOURCES[f]]
TEST_C_FILES = [p for p in ALL if p.suffix in (".c", ".h") and p.relative_to(ROOT).parts[0] == "tests"]
SCRIPTS = [p for p in ALL if is_script(p)]
MAN_PAGES = [p for p in ALL if p.parent == ROOT / "docs" and p.suffix in (".1", ".5", ".7", ".8")]
