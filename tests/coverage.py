#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Measures which lines of spec, backend and fs are executed.

	coverage.py prepare PROFILES        create the directory, so that each user may change the others' files
	coverage.py show BUILD PROFILES     print the figures in percent, and the files with the lowest coverage

BUILD was compiled by clang with -fprofile-instr-generate -fcoverage-mapping. The programs that ran
left *.profraw in PROFILES. A process that ended by a signal or _exit left no profile."""

import json
import os
import pathlib
import struct
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = ("spec", "backend", "fs")


def prepare(profiles):
    """Create the directory with a default ACL of rw-rw-rw-, which applies whatever umask a test
    has."""
    profiles.mkdir()
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", tag, 6, 0xFFFFFFFF) for tag in (0x01, 0x04, 0x20))
    os.setxattr(profiles, "system.posix_acl_default", acl)
    profiles.chmod(0o777)


def show(build, profiles):
    merged = profiles / "merged.profdata"
    subprocess.run(["llvm-profdata", "merge", "-sparse", *profiles.glob("*.profraw"), "-o", merged], check=True)
    programs = [build / "fs/kxfs", build / "tests/sim/kxfs-sim", *(p for p in (build / "tests/unit").glob("*-test-*") if p.is_file())]
    objects = [f"-object={path}" for path in programs[1:]]
    out = subprocess.run(["llvm-cov", "export", "-summary-only", f"-instr-profile={merged}", programs[0], *objects], check=True,
                         stdout=subprocess.PIPE).stdout
    files = {}
    for file in json.loads(out)["data"][0]["files"]:
        path = pathlib.Path(file["filename"]).resolve()
        if path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in FOLDERS:
            lines = file["summary"]["lines"]
            files[path.relative_to(ROOT)] = (lines["covered"], lines["count"])
    for path in sorted(files, key=lambda path: files[path][0] - files[path][1])[:20]:
        print(f"{path}: {files[path][0]} of {files[path][1]} lines")
    for folder in (*FOLDERS, None):
        found = [lines for path, lines in files.items() if folder in (None, path.parts[0])]
        ran, count = (sum(column) for column in zip(*found))
        print(f"{folder or 'all'}: {100 * ran / count:.1f} % of {count} lines")


if __name__ == "__main__":
    {"prepare": prepare, "show": show}[sys.argv[1]](*map(pathlib.Path, sys.argv[2:]))
