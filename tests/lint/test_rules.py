# SPDX-License-Identifier: MIT
"""The rules of docs/rules.md that a program can check: which folder may include what (D1-D4), what
a library may use, how files look, states, messages."""

import collections
import functools
import os
import pathlib
import re
import subprocess

import messages
import pytest
from calls import all_functions
from files import C_FILES, HEADERS, ROOT, SOURCES, TEXT_FILES, name_of

# --- D1-D3: includes -------------------------------------------------------------------------

# Headers of libc and the kernel that each folder may use. spec/ is pure (no I/O, threads or
# clocks).
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


@functools.cache
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


def test_includes():
    wrong = [f"{name_of(path)} may not include {header}" for path in C_FILES for kind, header in includes(path)
             if not may_include(path.relative_to(ROOT).parts[0], path, kind, header)]
    assert not wrong, "\n".join(wrong)


def test_spec_is_pure():
    """D1: spec/ has no I/O, threads, clocks or globals."""
    calls = re.compile(r"\b(open|fopen|read|write|printf|fprintf|puts|perror|clock_gettime|time|getenv|"
                       r"gettimeofday|pthread_\w+|rand|random|getrandom|usleep|nanosleep|syslog)\s*\(")
    wrong = []
    for path in SOURCES["spec"]:
        for number, line in enumerate(code_lines(path), 1):
            match = calls.search(line)
            # A memory stream (open_memstream) does not count as I/O. Text is built with fprintf to
            # it.
            if match and match[1] not in ("fprintf",):
                wrong.append(f"{name_of(path)}:{number}: {line.strip()}")
            if re.match(r"(static\s+)?(?!.*\bconst\b)(struct\s+)?\w+\s+\**\w+(\[\w*\])*\s*(=.*)?;", line):
                wrong.append(f"{name_of(path)}:{number}: a variable that can change: {line.strip()}")
    assert not wrong, "\n".join(wrong)


def code_lines(path):
    """Yield the lines of a C file without comments and without the contents of strings."""

    def blank(match):
        text = match[0]
        return '""' if text.startswith('"') else "\n" * text.count("\n")

    return re.sub(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', blank, path.read_text(),
                  flags=re.S).split("\n")


# --- D4: types that cross folders --------------------------------------------------------------

def test_public_headers():
    """D4: text, plain structs and opaque pointers may cross folders, but not types of other
    libraries."""
    crossing = {header for path in C_FILES for kind, header in includes(path)
                if kind == '"' and header.partition("/")[0] != path.relative_to(ROOT).parts[0]}
    wrong = []
    for path in (*HEADERS["spec"], *HEADERS["backend"]):
        if name_of(path) in crossing:
            types = re.findall(r"\b(?:struct\s+json_object\b|json_object\s*\*|uv_\w+_t|fuse_req_t|yaml_\w+_t|CURLM?\b)",
                               "\n".join(code_lines(path)))
            wrong += [f"{name_of(path)}: {name}" for name in types]
    assert not wrong, "in a header that other folders include: " + ", ".join(wrong)


# --- symbols of the libraries ----------------------------------------------------------------

SYMBOLS = {
    "spec": r"^(uv_|fuse_|curl_|pthread_)",
    "backend": r"^(json_|yaml_|fuse_)",
    "fs": r"^(json_|yaml_|uv_|curl_)",
}


@pytest.mark.parametrize("folder", SYMBOLS)
def test_symbols(folder):
    """Each static library uses only its own dependencies."""
    build = pathlib.Path(os.environ.get("KXFS_BUILD", ROOT / "build"))
    archives = sorted(build.glob(f"lib{folder}*.a"))
    out = subprocess.run(["nm", "-u", *archives], stdout=subprocess.PIPE, check=True, text=True).stdout
    names = {line.split()[-1] for line in out.splitlines() if line.strip().startswith("U ")}
    assert names, "an empty library"
    wrong = sorted(name for name in names if re.match(SYMBOLS[folder], name))
    assert not wrong, wrong


# --- format of files -----------------------------------------------------------------------

# The format of Debian's files does not allow this line. contrib/debian/copyright covers all of
# them.
NO_LICENCE_LINE = {"LICENSE", ".clang-format", ".clang-tidy", ".editorconfig", ".gitignore", "contrib/debian/copyright",
                   "contrib/debian/source/format"}


# Test data that other people's programs produced.
RAW = ("/corpus.jsonl", "/golden/", "/golden.txt", "/replay/data/", "/faults.patch")


def is_raw(path):
    return any(part in name_of(path) for part in RAW)


def is_expected(path, line):
    """Return whether LINE is a sentence that a test expects. Such a sentence is on one line, so
    that it can be searched for."""
    return name_of(path).startswith("tests/") and re.match(r'[\sA-Z_]*"[^"]{80,}', line)


def may_lack_licence(path):
    return name_of(path) in NO_LICENCE_LINE or path.suffix in (".md", ".json", ".jsonl", ".sum") or is_raw(path)


def test_licence_line():
    wrong = [name_of(path) for path in TEXT_FILES if not may_lack_licence(path)
             and not any("SPDX-License-Identifier: MIT" in line for line in path.read_text().split("\n")[:2])]
    assert not wrong, "no SPDX line at the head of " + ", ".join(wrong)


def test_head_comment():
    """After the SPDX line, each C file has a comment with its purpose, and the states of a state machine.
    The comment is not longer than 45 lines."""
    wrong = []
    for path in C_FILES:
        lines = path.read_text().split("\n")
        if lines[0] != "/* SPDX-License-Identifier: MIT */" or not lines[1].startswith("/*"):
            wrong.append(f"{name_of(path)}: no comment on what the file is for")
        elif next(i for i, line in enumerate(lines[1:], 1) if "*/" in line) > 45:
            wrong.append(f"{name_of(path)}: the head comment, with its table of states, is longer than 45 lines")
    assert not wrong, "\n".join(wrong)


def test_parameters_are_used():
    """Parameters are used, except in functions whose address is taken: another caller of the same
    type may use them."""
    files = all_functions(("spec/", "backend/", "fs/"))
    taken = {name for functions in files.values() for fn in functions.values() for name in fn.taken}
    assert not [f"{file}: {name}: {', '.join(fn.unused)}" for file, functions in files.items()
                for name, fn in functions.items() if fn.unused and name not in taken]


def test_headers_are_read_once():
    """Headers use #pragma once, which does not repeat the path."""
    wrong = [name_of(path) for folder in HEADERS.values() for path in folder
             if re.search(r"^#.*", path.read_text(), re.M)[0] != "#pragma once"]
    assert not wrong, wrong


# Split, so that this file does not contain them.
NOT_FOR_OTHERS = [re.compile(pattern) for pattern in (
    r"\bTO" r"DO\b", r"\bFIX" r"ME\b", r"(?<!X)\bX" r"XX\b(?!X)", r"/wo" r"rk/", r"\.\./sha" r"red", r"/ro" r"ot/",
    r"/ho" r"me/[a-z]+/")]


def wrong_lines(path, text):
    """Yield what is wrong with the format of the lines of TEXT from the file PATH."""
    is_c = path.suffix in (".c", ".h")
    for number, line in enumerate(text.split("\n"), 1):
        if line != line.rstrip():
            yield f"{number}: blank at the end of the line"
        if is_c and re.match(r" {8}| +\t", line):
            yield f"{number}: indented with blanks"
        if is_c and len(line.expandtabs(8)) > 120 and not is_expected(path, line):
            yield f"{number}: longer than 120 columns"
    if text and not text.endswith("\n"):
        yield "no newline at the end"


def test_text():
    """No spaces at line ends, tabs in C, no notes to self, no paths of somebody's machine."""
    wrong = []
    for path in TEXT_FILES:
        text = path.read_text()
        if not is_raw(path):
            wrong += [f"{name_of(path)}:{what}" for what in wrong_lines(path, text)]
        wrong += [f"{name_of(path)}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]}"
                  for pattern in NOT_FOR_OTHERS for match in pattern.finditer(text)]
    assert not wrong, "\n".join(wrong)


# --- A5: states -------------------------------------------------------------------------------
# A5: a state is one enum. A struct with many booleans has states without names, and combinations
# that nobody considered. So no struct has more than four booleans that describe a state.

MOST = 4

# Structs whose booleans are independent facts or options, which are set when the struct is created.
DATA = {
    "spec_job": "a snapshot of a job, which never changes",
    "spec_head": "the fields of a record, as the file has them",
    "spec_job_view": "a parsed object",
    "spec_pod_view": "a parsed object",
    "spec_phase": "what an object reports, for the reader of its kind",
    "spec_standing": "the input of a pure function",
    "http_call": "options of a request",
    "follow_state": "what is shown of a log, computed when it is asked for",
    "options": "options of the command line",
    "upload_look": "what is known of a file at one moment",
}

# Members that are options or arguments, which are copied when the struct is created.
OPTIONS = {
    "overlap": {"force"},
    "tree": {"may_end_own", "may_end_mine", "may_end_others", "read_only"},
    "follow": {"reruns"},
    "output_log": {"anew"},
}


def structs(text):
    """Yield the name of each struct that TEXT defines, and its boolean members. Nested structs
    count separately."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    for match in re.finditer(r"\bstruct\s+(?:(\w+)\s*)?\{", text):
        depth, end = 1, match.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        body = text[match.end() : end - 1]
        while re.search(r"\{[^{}]*\}", body):
            body = re.sub(r"\{[^{}]*\}", "", body)
        bools = []
        for member in body.split(";"):
            found = re.match(r"\s*(?:const\s+)?(?:bool|atomic_bool)\s+([^()]*)$", member)
            bits = re.match(r"\s*(?:unsigned|int|uint\w+)\s+((?:\w+\s*:\s*1\s*,?\s*)+)$", member)
            if found or bits:
                bools += [re.match(r"\w*", name.strip())[0] for name in (found or bits)[1].split(",")]
        yield match[1], bools


def test_structs_reads_members():
    text = "struct a { bool x, y; /* bool no; */ struct { bool z; } in; unsigned p : 1, q : 1; bool (*fn)(bool b); };"
    assert list(structs(text)) == [("a", ["x", "y", "p", "q"]), (None, ["z"])]


def test_states_are_enums():
    wrong, known = [], set()
    for path in C_FILES:
        for name, bools in structs(path.read_text()):
            known.add(name)
            bools = [b for b in bools if b not in OPTIONS.get(name, ())]
            if name in DATA or len(bools) <= MOST:
                continue
            wrong.append(f"{name_of(path)}: struct {name} has {len(bools)} booleans: {', '.join(bools)}")
    assert not wrong, "more than 4 booleans: name the states in an enum:\n" + "\n".join(wrong)
    assert set(DATA) | set(OPTIONS) <= known, "a struct of the tables is gone"


def test_each_struct_has_a_name_of_its_own():
    """A search for a struct finds only one. Names of private structs also contain their module's
    name."""
    places = collections.defaultdict(list)
    for path in C_FILES:
        for name, _ in structs(path.read_text()):
            if name and re.match("(spec|backend|fs)/", name_of(path)):
                places[name].append(name_of(path))
    assert not {name: found for name, found in places.items() if len(found) > 1}


# --- Messages ---------------------------------------------------------------------------------
# The list of sentences for users is up to date, so that each new one is visible in review.


def test_list_is_up_to_date():
    assert messages.messages() == messages.LIST.read_text(), "run tests/lint/messages.py --write, and read the difference"


def test_literals():
    found = list(messages.literals('#include "a b"\nf("one " "two" /* c "no" */\n  "three", "x " PRIu64 " y", \'"\');\n'))
    assert found == ["one twothree", "x <PRIu64> y"]


def test_no_words_that_need_a_second_reading():
    """Phrases to avoid; see docs/rules.md, "Style"."""
    phrases = ("by itself", "at one look", "put out", "who runs", "mended", "listing anew",
               "stands in line", "tells of", "told of")
    found = [line for line in messages.messages().splitlines() for phrase in phrases if phrase in line]
    assert not found
