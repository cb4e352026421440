# SPDX-License-Identifier: MIT
"""The rules that CONTRIBUTING.md states and a machine can check: which folder may include what
(D1-D4), what a library may refer to, how a file looks."""

import os
import pathlib
import re
import subprocess

import pytest
from files import ROOT, C_FILES, HEADERS, SOURCES, TEXT_FILES, name_of

# --- D1-D3: includes -------------------------------------------------------------------------

# Headers of libc and of the kernel that each folder may use; spec/ is pure (no I/O, no threads, no clocks).
PURE = {"assert.h", "ctype.h", "endian.h", "errno.h", "float.h", "inttypes.h", "limits.h", "locale.h", "math.h",
        "stdarg.h", "stdatomic.h", "stdbool.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h",
        "string.h", "strings.h", "time.h", "unistd.h", "sys/types.h"}
SYSTEM = re.compile(r"^[a-z_]+\.h$|^(sys|linux|netinet|arpa)/[a-z_]+\.h$")
FOREIGN = {"spec": {"yaml.h"}, "backend": {"uv.h", "curl/curl.h"}, "fs": set()}
FOREIGN_PREFIX = {"spec": ("json-c/",), "backend": (), "fs": ()}
UTHASH = {"uthash.h", "utlist.h", "utarray.h", "utstring.h"}
LIBRARIES = UTHASH | {"yaml.h", "uv.h", "fuse.h", "fuse_lowlevel.h", "fuse_opt.h", "curl.h", "cmocka.h"}
OWN = {
    "spec": ("spec/",),
    "backend": ("backend/", "spec/"),
    "fs": ("fs/", "spec/", "backend/backend.h", "backend/output/log.h", "backend/base/"),
}


def includes(path):
    return re.findall(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', path.read_text(), re.M)


def may_include(folder, path, kind, header):
    if kind == '"':
        return header.startswith(OWN[folder])
    if header in UTHASH:
        return folder != "spec"
    if header in FOREIGN[folder] or header.startswith(FOREIGN_PREFIX[folder] or ("\0",)):
        return True
    if folder == "fs" and header.startswith("fuse"):
        return name_of(path) == "fs/vfs/fuse.h"
    if header in LIBRARIES or "json" in header:
        return False
    return header in PURE if folder == "spec" else bool(SYSTEM.match(header))


@pytest.mark.parametrize("path", C_FILES, ids=name_of)
def test_includes(path):
    folder = path.relative_to(ROOT).parts[0]
    wrong = [header for kind, header in includes(path) if not may_include(folder, path, kind, header)]
    assert not wrong, f"{folder}/ may not include {wrong}"


def test_spec_is_pure():
    """D1: no I/O, threads, clocks, globals in spec/."""
    calls = re.compile(r"\b(open|fopen|read|write|printf|fprintf|puts|perror|clock_gettime|time|getenv|"
                       r"gettimeofday|pthread_\w+|rand|random|getrandom|usleep|nanosleep|syslog)\s*\(")
    wrong = []
    for path in SOURCES["spec"]:
        for number, line in enumerate(code_lines(path), 1):
            match = calls.search(line)
            # A memory stream (open_memstream) is no I/O: fprintf to it is how text is made.
            if match and match[1] not in ("fprintf",):
                wrong.append(f"{name_of(path)}:{number}: {line.strip()}")
            if re.match(r"(static\s+)?(?!.*\bconst\b)(struct\s+)?\w+\s+\**\w+(\[\w*\])*\s*(=.*)?;", line):
                wrong.append(f"{name_of(path)}:{number}: a variable that can change: {line.strip()}")
    assert not wrong, "\n".join(wrong)


def code_lines(path):
    """The lines of a C file without comments and the contents of strings."""

    def blank(match):
        text = match[0]
        return '""' if text.startswith('"') else "\n" * text.count("\n")

    return re.sub(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', blank, path.read_text(),
                  flags=re.S).split("\n")


# --- D4: what crosses a folder -----------------------------------------------------------------

@pytest.mark.parametrize("path", [*HEADERS["spec"], *HEADERS["backend"]], ids=name_of)
def test_public_headers(path):
    """D4: text, plain structs and opaque pointers go across folders, no other library's types."""
    text = "\n".join(code_lines(path))
    users = {name_of(p) for p in C_FILES
             if p.relative_to(ROOT).parts[0] != path.relative_to(ROOT).parts[0]
             and ('"', name_of(path)) in includes(p)}
    if not users:
        return
    wrong = re.findall(r"\b(?:struct\s+json_object\b|json_object\s*\*|uv_\w+_t|fuse_req_t|yaml_\w+_t|CURLM?\b)", text)
    assert not wrong, f"{wrong} in a header that {sorted(users)} include"


# --- what the libraries refer to ------------------------------------------------------------

SYMBOLS = {
    "spec": r"^(uv_|fuse_|curl_|pthread_)",
    "backend": r"^(json_|yaml_|fuse_)",
    "fs": r"^(json_|yaml_|uv_|curl_)",
}


@pytest.mark.parametrize("folder", SYMBOLS)
def test_symbols(folder):
    """Each static library refers only to its own dependencies."""
    build = pathlib.Path(os.environ.get("KXFS_BUILD", ROOT / "build"))
    archives = sorted((build / folder).rglob("lib*.a"))
    out = subprocess.run(["nm", "-u", *archives], stdout=subprocess.PIPE, check=True, text=True).stdout
    names = {line.split()[-1] for line in out.splitlines() if line.strip().startswith("U ")}
    assert names, "an empty library"
    wrong = sorted(name for name in names if re.match(SYMBOLS[folder], name))
    assert not wrong, wrong


# --- how files look ------------------------------------------------------------------------

# Debian's files have a form that leaves no room for it; contrib/debian/copyright is about all of them.
NO_LICENCE_LINE = {"LICENSE", ".clang-format", ".clang-tidy", ".editorconfig", ".gitignore", "contrib/debian/copyright",
                   "contrib/debian/source/format"}


# Files of test data that are as somebody else's program made them.
RAW = ("/corpus/", "/golden/", "/replay/data/", "/sim/faults/", "/mutants/faults/")


def is_raw(path):
    return any(part in name_of(path) for part in RAW)


def is_expected(path, line):
    """Is LINE a sentence that a test expects? Such a one is whole, so that it can be found."""
    return name_of(path).startswith("tests/") and re.match(r'[\sA-Z_]*"[^"]{80,}', line)


def may_lack_licence(path):
    return name_of(path) in NO_LICENCE_LINE or path.suffix in (".md", ".json", ".sum") or is_raw(path)


@pytest.mark.parametrize("path", [p for p in TEXT_FILES if not may_lack_licence(p)], ids=name_of)
def test_licence_line(path):
    head = path.read_text().split("\n")[:2]
    assert any("SPDX-License-Identifier: MIT" in line for line in head), "no SPDX line at its head"


@pytest.mark.parametrize("path", C_FILES, ids=name_of)
def test_head_comment(path):
    """After the SPDX line, a comment says what the file is for, with the table of states of an automaton."""
    lines = path.read_text().split("\n")
    assert lines[0] == "/* SPDX-License-Identifier: MIT */"
    assert lines[1].startswith("/*"), "no comment on what the file is for"
    end = next(i for i, line in enumerate(lines[1:], 1) if "*/" in line)
    assert end <= 45, "the head comment, with its table of states, is longer than 45 lines"


@pytest.mark.parametrize("path", HEADERS["spec"] + HEADERS["backend"] + HEADERS["fs"], ids=name_of)
def test_headers_are_read_once(path):
    """By a line that does not say the path again."""
    assert re.search(r"^#.*", path.read_text(), re.M)[0] == "#pragma once"


@pytest.mark.parametrize("path", TEXT_FILES, ids=name_of)
def test_text(path):
    """No blanks at line ends, tabs in C, no notes to self, no path of somebody's machine."""
    text = path.read_text()
    wrong = []
    raw = is_raw(path)
    for number, line in enumerate(text.split("\n"), 1):
        if raw:
            break
        if line != line.rstrip():
            wrong.append(f"{number}: blank at the end of the line")
        if path.suffix in (".c", ".h") and re.match(r" {8}| +\t", line):
            wrong.append(f"{number}: indented with blanks")
        if path.suffix in (".c", ".h") and len(line.expandtabs(8)) > 120 and not is_expected(path, line):
            wrong.append(f"{number}: longer than 120 columns")
    if text and not text.endswith("\n") and not raw:
        wrong.append("no newline at the end")
    # Spelled so that this file does not contain them.
    for pattern in (r"\bTO" r"DO\b", r"\bFIX" r"ME\b", r"(?<!X)\bX" r"XX\b(?!X)", r"/wo" r"rk/", r"\.\./sha" r"red",
                    r"/ro" r"ot/", r"/ho" r"me/[a-z]+/"):
        for match in re.finditer(pattern, text):
            wrong.append(f"{text.count(chr(10), 0, match.start()) + 1}: {match[0]}")
    assert not wrong, "\n".join(wrong)
