# SPDX-License-Identifier: MIT
"""The structure of the built program: its libraries (a folder with a meson.build that makes one), what each may
use, which file defines and uses which symbol, which file includes which header."""

import dataclasses
import functools
import os
import pathlib
import re
import subprocess

from files import ROOT

BUILD = pathlib.Path(os.environ.get("KXFS_BUILD", ROOT / "build"))
TOPS = ("spec", "backend", "fs")

# The drawing of docs/architecture.md: which libraries each may use. The order is the order of the floors.
USES = {
    "spec/base": (),
    "spec/yaml": ("spec/base",),
    "spec/app": ("spec/base", "spec/yaml"),
    "spec/job": ("spec/base", "spec/yaml"),
    "spec/api": ("spec/base", "spec/yaml"),
    "spec/logline": ("spec/base",),
    "spec/view": ("spec/job", "spec/api"),
    "spec/pods": ("spec/app", "spec/view"),
    "spec/kindfile": ("spec/pods",),
    "spec/kinds": ("spec/kindfile",),
    "spec/record": ("spec/kinds",),
    "backend/base": ("spec/base",),
    "backend/client": ("backend/base", "spec/api", "spec/logline"),
    "backend/output": ("backend/base",),
    "backend/archive": ("backend/output", "spec/job"),
    "backend/jobs": ("backend/archive", "backend/output", "spec/record"),
    "backend/impl": ("backend/jobs", "spec/record", "spec/view"),
    "backend/kube": ("backend/client", "backend/impl", "spec/kinds"),
    "backend/local": ("backend/output", "backend/impl", "spec/record"),
    "backend": ("backend/kube", "backend/local"),
    "fs/vfs": ("backend/base",),
    "fs/tree": ("fs/vfs", "backend"),
    "fs/submit": ("fs/vfs", "backend"),
    "fs/cli": ("backend/base", "spec/record"),
    "fs/mount": ("fs/tree", "fs/submit", "fs/cli"),
}


# The face is declarations alone. Those who implement it include it too, so it stands as low as what it needs.
FACE = {"backend/backend.h": "backend/impl"}


@functools.cache
def floor(library):
    """All libraries that this one may use, directly or through others."""
    return {library}.union(*(floor(other) for other in USES[library]))


def library_of(path):
    """The library that a path (spec/kinds/volcano/make.c) belongs to; None: none."""
    if path in FACE:
        return FACE[path]
    parts = path.split("/")
    for n in (len(parts) - 1, 2, 1):
        if "/".join(parts[:n]) in USES:
            return "/".join(parts[:n])
    return None


@dataclasses.dataclass
class Object:
    """One file as it was compiled."""
    source: str
    library: str
    defines: set
    uses: set


def object_of(source, library):
    """The path of what the build has made of it."""
    top = source.partition("/")[0]
    built = [*(BUILD / library).glob(f"*.p/{source.removeprefix(library + '/').replace('/', '_')}.o"),
             *(BUILD / top).glob(f"kxfs.p/{source.removeprefix(top + '/').replace('/', '_')}.o")]
    assert built, f"{source} is not built"
    return str(built[0])


@functools.cache
def objects():
    """Every object of the program that the build has made."""
    found = {}
    for top in TOPS:
        for path in sorted((ROOT / top).rglob("*.c")):
            source = path.relative_to(ROOT).as_posix()
            library = library_of(source)
            found[object_of(source, library)] = Object(source, library, set(), set())
    out = subprocess.run(["nm", "-gA", *found], stdout=subprocess.PIPE, check=True, text=True).stdout
    for line in out.splitlines():
        path, _, row = line.partition(":")
        kind, name = row.split()[-2:]
        if kind == "U":
            found[path].uses.add(name)
        elif kind not in "vw":
            found[path].defines.add(name)
    return list(found.values())


@functools.cache
def calls():
    """The arrows between files: (user, definer) to the symbols by which the one uses the other."""
    where = {symbol: obj for obj in objects() for symbol in obj.defines}
    arrows = {}
    for obj in objects():
        for symbol in obj.uses & where.keys():
            if where[symbol] is not obj:
                arrows.setdefault((obj.source, where[symbol].source), set()).add(symbol)
    return arrows


@functools.cache
def includes(path):
    return re.findall(r'^\s*#\s*include\s*"([^"]+)"', path.read_text(), re.M)


@functools.cache
def public_headers(library):
    """Those that the folder's meson.build names for others."""
    text = (ROOT / library / "meson.build").read_text()
    name = library.replace("/", "_") + "_headers"
    found = re.search(rf"^{name} = files\((.*?)\)", text, re.S | re.M)
    face = {header for header, other in FACE.items() if other == library}
    return face.union(f"{library}/{h}" for h in re.findall(r"'([^']+\.h)'", found[1]) if found)


def circles(nodes, arrows):
    """Groups of nodes that reach each other (strongly connected, of two or more)."""
    after = {node: {b for a, b in arrows if a == node} for node in nodes}

    def reach(start):
        seen, todo = set(), [start]
        while todo:
            for node in after[todo.pop()] - seen:
                seen.add(node)
                todo.append(node)
        return seen

    reached = {node: reach(node) for node in nodes}
    groups = {frozenset(b for b in nodes if b in reached[a] and a in reached[b]) for a in nodes}
    return sorted(sorted(group) for group in groups if len(group) > 1)
