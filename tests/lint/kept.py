# SPDX-License-Identifier: MIT
"""What was found out about a source is kept, in a cache outside the tree, as long as its text, its headers and how it is compiled
are the same, in whichever checkout that is."""

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
    """How the build compiles each file, and the name of what it makes of it."""
    database = json.loads((BUILD / "compile_commands.json").read_text())
    return {os.path.realpath(os.path.join(entry["directory"], entry["file"])): (entry["command"], entry["output"])
            for entry in database}


@functools.cache
def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).digest()


@functools.cache
def read_by():
    """The files that the compiler has read for each object, as the build has noted it."""
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
    """Where what is known of SOURCE is kept, found out by the files BY."""
    command, output = commands()[str(source)]
    words = [word for word in shlex.split(command) if word.startswith(("-D", "-I", "-std", "-W", "-f"))]
    key = hashlib.sha256(version() + " ".join(words).encode())
    for name in (*by, *(os.path.join(BUILD, name) for name in read_by()[output])):
        key.update(digest(name))
    return build.cache_dir() / kind / key.hexdigest()


def put(place, value):
    """In one step: two of the tests may be at the same source."""
    place.parent.mkdir(parents=True, exist_ok=True)
    new = place.with_name(f"{place.name}.{os.getpid()}")
    new.write_text(json.dumps(value))
    new.rename(place)


def kept(kind, source, by, find):
    """What FIND() says of SOURCE, plain data."""
    place = place_of(kind, source, by)
    try:
        return json.loads(place.read_text())
    except (OSError, ValueError):
        value = find()
        put(place, value)
        return value
