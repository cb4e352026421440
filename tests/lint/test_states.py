# SPDX-License-Identifier: MIT
"""A5: a state is one enum. A struct with many booleans has states that nobody has named, and combinations that nobody
has thought of. So no struct has more than four booleans that describe a state."""

import collections
import re

from files import C_FILES, name_of

MOST = 4

# Structs whose booleans are facts or options, each independent of the others: they are set when the struct is made.
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
}

# Members that are options or arguments, which the struct copies when it is made.
OPTIONS = {
    "overlap": {"force"},
    "tree": {"may_end_own", "may_end_mine", "may_end_others", "read_only"},
    "follow": {"reruns"},
}


def structs(text):
    """The name of each struct that TEXT defines, and its boolean members; nested structs count by themselves."""
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
    """A reader who looks for a struct finds one: private ones carry their module's name, too."""
    places = collections.defaultdict(list)
    for path in C_FILES:
        for name, _ in structs(path.read_text()):
            if name and re.match("(spec|backend|fs)/", name_of(path)):
                places[name].append(name_of(path))
    assert not {name: found for name, found in places.items() if len(found) > 1}
