# SPDX-License-Identifier: MIT
"""The structure of the built program, and the rules of docs/rules.md about folders and files (A1,
A2): dependencies have one direction and no cycles, private headers are not used by other folders,
and only one file writes a struct's fields."""

import collections
import concurrent.futures
import dataclasses
import functools
import json
import os
import pathlib
import re
import shlex
import subprocess

import kept
import pytest
from files import C_FILES, ROOT, name_of

# --- The program -------------------------------------------------------------------------------
# Its libraries (the table of meson.build), which ones each may use, which file defines and uses
# which symbol, and which file includes which header.

BUILD = pathlib.Path(os.environ.get("KXFS_BUILD", ROOT / "build"))
TOPS = ("spec", "backend", "fs")

# The libraries that each may use, in the order of docs/architecture.md.
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
    "backend/output": ("backend/base", "spec/logline"),
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


# This header contains only declarations. Its implementations include it too, so its level is that
# of what it needs.
FACE = {"backend/backend.h": "backend/impl"}


@functools.cache
def usable(library):
    """Return all libraries that this one may use, directly or through others."""
    return {library}.union(*(usable(other) for other in USES[library]))


def library_of(path):
    """Return the library to which a path (spec/kinds/volcano.c) belongs, or None."""
    if path in FACE:
        return FACE[path]
    parts = path.split("/")
    for n in (len(parts) - 1, 2, 1):
        if "/".join(parts[:n]) in USES:
            return "/".join(parts[:n])
    return None


@dataclasses.dataclass
class Object:
    """One compiled file."""
    source: str
    library: str
    defines: set
    uses: set


def object_of(source, library):
    """Return the path of the object file of a source."""
    built = [*BUILD.glob(f"lib{library.replace('/', '_')}.a.p/{source.replace('/', '_')}.o"),
             *(BUILD / "fs").glob(f"kxfs.p/{source.removeprefix('fs/').replace('/', '_')}.o")]
    assert built, f"{source} is not built"
    return str(built[0])


@functools.cache
def objects():
    """Return every object file of the program."""
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
    """Return the dependencies between files: (user, definer) -> the symbols that are used."""
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
    """Return the headers that meson.build lists as public."""
    face = {header for header, other in FACE.items() if other == library}
    return face.union(f"{library}/{header}" for header in declared(library)[0])


@functools.cache
def declared(library):
    """Return (the public headers, the names of the used libraries) from meson.build."""
    part = re.search(rf"^    '{library}': \{{(.*?)^    \}}", (ROOT / "meson.build").read_text(), re.S | re.M)[1]
    headers, uses = (re.search(rf"'{key}': \[(.*?)\]", part, re.S)[1] for key in ("headers", "uses"))
    return re.findall(r"'([^']+)'", headers), set(re.findall(r"'([^']+)'", uses))


def cycles(nodes, arrows):
    """Return the cycles: groups of two or more nodes that reach each other."""
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


# --- The rules --------------------------------------------------------------------------------

LIBRARIES = sorted(USES)


def test_every_folder_is_a_library():
    """Every folder with C files is in USES, and every folder of USES exists."""
    found = {library_of(name_of(path)) for path in C_FILES}
    assert None not in found
    assert found == set(USES)


def test_uses_has_no_cycle():
    below = set()
    for library, uses in USES.items():
        assert set(uses) <= below, f"{library} uses a library that is not above it in USES"
        below.add(library)


@pytest.mark.parametrize("library", LIBRARIES)
def test_meson_links_what_is_allowed(library):
    """A library is linked only with libraries that USES allows."""
    uses = declared(library)[1]
    ours = {other for other in USES if other.replace("/", "_") in uses}
    assert uses - {o.replace("/", "_") for o in ours} <= {"dep_json", "dep_yaml", "dep_m", "dep_uv", "dep_curl",
                                                              "dep_fuse", "dep_threads"}
    assert ours <= usable(library), f"{library} may not use {sorted(ours - usable(library))}"


@pytest.mark.parametrize("library", LIBRARIES)
def test_no_use_of_higher_libraries(library):
    """A library uses only symbols that are defined in itself or in a lower library."""
    wrong = [f"{a} uses {', '.join(sorted(names))} of {b}" for (a, b), names in sorted(calls().items())
             if library_of(a) == library and library_of(b) not in usable(library)]
    assert not wrong, "\n".join(wrong)


def test_no_function_is_for_tests_alone():
    """Everything that the program defines is used in another file, or again in the same one."""
    used = set().union(*(obj.uses for obj in objects()))
    alone = {name for obj in objects() for name in obj.defines - used
             if len(re.findall(rf"\b{name}\b", (ROOT / obj.source).read_text())) == 1}
    assert alone <= {"main"}


@pytest.mark.parametrize("library", LIBRARIES)
def test_no_cycle_of_files(library):
    inside = {obj.source for obj in objects() if obj.library == library}
    arrows = {(a, b) for a, b in calls() if a in inside and b in inside}
    found = cycles(inside, arrows)
    names = ["\n".join(f"{a} uses {', '.join(sorted(calls()[a, b]))} of {b}" for a, b in sorted(arrows)
                       if a in group and b in group) for group in found]
    assert not found, "\n\n".join(names)


def test_no_cycle_of_folders():
    """There are no cycles between libraries, or between folders within them, such as those of the
    kinds."""
    arrows = {(str(pathlib.PurePath(a).parent), str(pathlib.PurePath(b).parent)) for a, b in calls()}
    arrows = {(a, b) for a, b in arrows if a != b}
    found = cycles({folder for arrow in arrows for folder in arrow}, arrows)
    assert not found, "\n\n".join(
        "\n".join(f"{a} uses {', '.join(sorted(names))} of {b}" for (a, b), names in sorted(calls().items())
                  if {str(pathlib.PurePath(a).parent), str(pathlib.PurePath(b).parent)} <= set(group)
                  and pathlib.PurePath(a).parent != pathlib.PurePath(b).parent) for group in found)


def test_no_folder_is_crowded():
    """A folder has at most 20 sources. With more, it should be two folders."""
    counts = collections.Counter(obj.source.rpartition("/")[0] for obj in objects())
    assert not {folder: n for folder, n in counts.items() if n > 20}


def test_includes_of_other_folders():
    """A header that is included from another folder must be public there, and that folder must be
    lower."""
    wrong = []
    for path in C_FILES:
        library = library_of(name_of(path))
        for header in includes(path):
            other = library_of(header)
            if other != library and other not in usable(library):
                wrong.append(f"{name_of(path)}: {header}: {library} may not use {other}")
            elif other != library and header not in public_headers(other):
                wrong.append(f"{name_of(path)}: {header} is private to {other}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("library", LIBRARIES)
def test_public_headers_are_used(library):
    """Every public header is included by another folder."""
    used = {header for path in C_FILES if library_of(name_of(path)) != library for header in includes(path)}
    todo = set(used)
    while todo:  # what a public header includes is public too
        more = {h for header in todo if (ROOT / header).exists() for h in includes(ROOT / header)} - used
        used |= more
        todo = more
    assert public_headers(library) <= used, f"no other folder includes {sorted(public_headers(library) - used)}"


def test_no_shared_private_structs():
    """No header exposes private structs to all files of its folder."""
    wrong = [name_of(path) for path in C_FILES if path.name.endswith("_impl.h")]
    assert not wrong


# --- Which file owns a struct -----------------------------------------------------------------


def compile_arguments():
    """Return the compiler arguments of each source that the parser needs."""
    rows = json.loads((BUILD / "compile_commands.json").read_text())
    found = {}
    for row in rows:
        source = (BUILD / row["file"]).resolve()
        words = shlex.split(row["command"])
        found[source] = [f"-I{(BUILD / w[2:]).resolve()}" if w.startswith("-I") else w
                         for w in words if re.match(r"-(I|D|std=)", w)]
    return found


def written_fields(source, arguments):
    """Return the structs of headers whose fields this file writes: {(header, struct)}."""
    from clang.cindex import CursorKind, Index

    unit = Index.create().parse(str(source), args=arguments)
    errors = [str(d) for d in unit.diagnostics if d.severity >= d.Error]
    assert not errors, errors
    found = set()

    def note(cursor):
        """Record the struct of each member in the expression CURSOR, which is written to."""
        while cursor.kind in (CursorKind.UNEXPOSED_EXPR, CursorKind.PAREN_EXPR, CursorKind.ARRAY_SUBSCRIPT_EXPR):
            children = list(cursor.get_children())
            if not children:
                return
            cursor = children[0]
        if cursor.kind != CursorKind.MEMBER_REF_EXPR or not cursor.referenced:
            return
        struct = cursor.referenced.semantic_parent
        place = struct.location.file
        if place and place.name.endswith(".h"):
            try:
                found.add((pathlib.Path(place.name).resolve().relative_to(ROOT).as_posix(), struct.spelling))
            except ValueError:
                pass  # from another library

    def is_assignment(cursor, left):
        """Return whether "=" is between the two operands. The tokens show it, the cursor does not."""
        tokens = [t.spelling for t in cursor.get_tokens()]
        n = len(list(left.get_tokens()))
        return n < len(tokens) and tokens[n] == "="

    def walk(cursor):
        for child in cursor.get_children():
            if child.location.file and child.location.file.name != str(source) and \
                    cursor.kind == CursorKind.TRANSLATION_UNIT:
                continue
            if child.kind == CursorKind.COMPOUND_ASSIGNMENT_OPERATOR:
                note(next(child.get_children()))
            elif child.kind == CursorKind.BINARY_OPERATOR:
                left = next(child.get_children())
                if is_assignment(child, left):
                    note(left)
            elif child.kind == CursorKind.UNARY_OPERATOR:
                tokens = [t.spelling for t in child.get_tokens()]
                if tokens and ("++" in (tokens[0], tokens[-1]) or "--" in (tokens[0], tokens[-1])):
                    note(next(child.get_children()))
            walk(child)

    walk(unit.cursor)
    return found


def is_plain_data(header, struct):
    """Return whether the struct's comment declares it as plain data, which any file may write."""
    text = (ROOT / header).read_text()
    place = re.search(rf"^struct {struct} \{{", text, re.M)
    if not place:
        return True  # nested or anonymous: part of a struct that is checked
    before = text[:place.start()].rstrip()
    comment = before[before.rfind("/*"):] if before.endswith("*/") else ""
    return "plain data" in re.sub(r"[\s*]+", " ", comment.lower())


def written_by(row):
    source, arguments = row
    return source, kept.kept("fields", source, [__file__], lambda: sorted(written_fields(source, arguments)))


def test_fields_are_written_in_one_file():
    """A2: a struct in a header is declared as plain data, or only one file writes its fields."""
    rows = [(s, a) for s, a in compile_arguments().items()
            if s.suffix == ".c" and s.relative_to(ROOT).parts[0] in TOPS]
    assert len(rows) > 50
    writers = {}
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        for source, found in pool.map(written_by, rows, chunksize=4):
            for struct in found:
                writers.setdefault(tuple(struct), set()).add(name_of(source))
    wrong = [f"{header}: struct {struct} is written by {', '.join(sorted(files))}"
             for (header, struct), files in sorted(writers.items())
             if header.startswith(TOPS) and len(files) > 1 and not is_plain_data(header, struct)]
    assert not wrong, "\n".join(wrong)


# --- Tests of this file -----------------------------------------------------------------------
# The checks of the architecture themselves: they find what they should find.


def test_cycles_are_found():
    assert cycles("abc", {("a", "b"), ("b", "c")}) == []
    assert cycles("abc", {("a", "b"), ("b", "a"), ("b", "c")}) == [["a", "b"]]
    assert cycles("abcd", {("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")}) == [["a", "b", "c"]]


def test_a_path_belongs_to_its_innermost_library():
    assert library_of("spec/kinds/volcano.c") == "spec/kinds"
    assert library_of("backend/kube/kube.c") == "backend/kube"
    assert library_of("backend/backend.c") == "backend"
    assert library_of("backend/backend.h") == "backend/impl"  # only declarations
    assert library_of("tests/unit/spec/test-x.c") is None


def test_usable():
    assert "spec/base" in usable("backend/kube")
    assert "backend/kube" not in usable("spec/base")


def test_only_a_comment_above_the_struct_makes_it_plain_data(tmp_path, monkeypatch):
    (tmp_path / "a.h").write_text("/* Plain data: anybody fills it in. */\nstruct a {\n\tint x;\n};\n\n"
                                  "struct b {\n\tint x;\n};\n\n"
                                  "/* An object. */\nstruct c {\n\tint x; /* plain data */\n};\n")
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    assert [is_plain_data("a.h", s) for s in "abc"] == [True, False, False]


def test_writes_are_found(tmp_path, monkeypatch):
    (tmp_path / "a.h").write_text("struct a {\n\tint x;\n};\nstruct b {\n\tint x;\n};\nstruct c {\n\tint x;\n};\n")
    source = tmp_path / "a.c"
    source.write_text('#include "a.h"\n'
                      "int f(struct a *a, struct b *b, const struct c *c)\n"
                      "{\n\ta->x = c->x;\n\treturn b->x++;\n}\n")
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    assert written_fields(source, []) == {("a.h", "a"), ("a.h", "b")}
