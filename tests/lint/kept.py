# SPDX-License-Identifier: MIT
"""Caches results about a source outside the tree. They are valid while the source's text, its
headers and its compiler flags are the same, in any checkout."""

import functools
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

from files import ROOT

sys.path.append(str(ROOT / "tests/cluster"))
import build  # noqa: E402

BUILD = pathlib.Path(os.environ.get("KXFS_BUILD", ROOT / "build"))


@functools.cache
def commands():
    """Return the command that compiles each file, and the name of its output."""
    database = json.loads((BUILD / "compile_commands.json").read_text())
    return {os.path.realpath(os.path.join(entry["directory"], entry["file"])): (entry["command"], entry["output"])
            for entry in database}


@functools.cache
def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).digest()


@functools.cache
def read_by():
    """Return the files that the compiler has read for each object, according to the build."""
    out = subprocess.run(["ninja", "-C", BUILD, "-t", "deps"], stdout=subprocess.PIPE, check=True, text=True).stdout
    found = {}
    for line in out.splitlines():
        if line.startswith(" "):
            found[name].append(line.strip())
        elif line:
            name = line.partition(":")[0]
            found[name] = []
    return found


@functools.cache
def version():
    return subprocess.run(["clang-tidy", "--version"], stdout=subprocess.PIPE, check=True).stdout


def place_of(kind, source, by):
    """Return the path of the cached result about SOURCE, which depends on the files BY."""
    command, output = commands()[str(source)]
    words = [word for word in shlex.split(command) if word.startswith(("-D", "-I", "-std", "-W", "-f"))]
    key = hashlib.sha256(version() + " ".join(words).encode())
    for name in (*by, *(os.path.join(BUILD, name) for name in read_by()[output])):
        key.update(digest(name))
    return build.cache_dir() / kind / key.hexdigest()


def put(place, value):
    """Write atomically, because two tests may handle the same source."""
    place.parent.mkdir(parents=True, exist_ok=True)
    new = place.with_name(f"{place.name}.{os.getpid()}")
    new.write_text(json.dumps(value))
    new.rename(place)


def kept(kind, source, by, find):
    """Return what FIND() returns for SOURCE, which must be plain data."""
    place = place_of(kind, source, by)
    try:
        return json.loads(place.read_text())
    except (OSError, ValueError):
        value = find()
        put(place, value)
        return value
