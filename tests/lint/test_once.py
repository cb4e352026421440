# SPDX-License-Identifier: MIT
"""Rule L1: a static function that is called once has a name because it is a step of a table, or a question; else it
stands in its caller.

A question returns a bool. A step is called from a `switch`, or its address stands in a table: then it is not called by
its name at all. A function whose caller would be too long with it keeps its name, too. What is left is counted, and so are all lines."""

import re

from calls import all_functions, functions_of
from files import FOLDERS, ROOT

# How many there are. It may only go down: who adds one, removes one.
LIMIT = 303
# A caller of more lines is too long to take one in.
LONG = 45
# How many lines of C there are. It goes up only in a commit that brings something which users see, and is lowered by the others.
LINES = 84031


def uses(text, name):
    """How often TEXT, a source, names the function NAME, beside its definition and declarations."""
    return len(re.findall(rf"\b{name}\b", text)) - len(re.findall(rf"^\w[\w \t*()]*?\b{name}\([^;{{]*[;{{]", text, re.M))


def once(text, functions):
    """Those of FUNCTIONS, of the source TEXT, each with its caller."""
    text = re.sub(r"/\*.*?\*/|\"(\\.|[^\"\\])*\"", "", text, flags=re.S)
    found = []
    for name, fn in functions.items():
        callers = [(at, caller) for at, caller in functions.items() if caller.calls[name]]
        if name is None or not fn.static or fn.question or len(callers) != 1:
            continue
        at, caller = callers[0]
        if at in (None, name) or caller.calls[name] > 1 or caller.cases[name] or uses(text, name) != 1:
            continue
        if caller.lines + fn.lines - 3 <= LONG:
            found.append((name, at))
    return found


def test_functions_that_are_called_once():
    found = [f"{file}: {name}, by {caller}"
             for file, functions in sorted(all_functions(("spec/", "backend/", "fs/")).items())
             for name, caller in once((ROOT / file).read_text(), functions)]
    assert len(found) <= LIMIT, f"{len(found)} static functions are called once, {LIMIT} were:\n" + "\n".join(found)
    assert len(found) > LIMIT - 50, f"there are only {len(found)} now: LIMIT can be lowered"


def test_parameters_are_used():
    """But those of functions whose address is taken, since another may use what they are given."""
    files = all_functions(("spec/", "backend/", "fs/"))
    taken = {name for functions in files.values() for fn in functions.values() for name in fn.taken}
    assert not [f"{file}: {name}: {', '.join(fn.unused)}" for file, functions in files.items()
                for name, fn in functions.items() if fn.unused and name not in taken]


def test_lines():
    lines = sum(path.read_text().count("\n") for folder in FOLDERS for path in (ROOT / folder).rglob("*.[ch]"))
    assert lines <= LINES, f"{lines} lines, {LINES} were: what has become superfluous?"
    assert lines > LINES - 1000, f"there are only {lines} now: LINES can be lowered"


SOURCE = """#include <stdbool.h>
static int plain(int n)
{
	return n + 1; /* plain */
}

static bool is_odd(int n)
{
	return n % 2;
}

static int step(int n)
{
	return n - 1;
}

static int row(int n)
{
	return n;
}

static int twice(int n)
{
	return n;
}

static int long_one(int n)
{
LINES
	return n;
}

static int (*const table[])(int n) = {row};

int all(int n)
{
	switch (n) {
	case 1:
		return step(n);
	default:
		return is_odd(n) ? plain(n) + table[0](n) + row(n) : twice(n) + twice(n) + long_one(n);
	}
}
"""


def test_one_is_found(tmp_path):
    """The search itself."""
    path = tmp_path / "one.c"
    path.write_text(SOURCE.replace("LINES", "\tn++;\n" * LONG))
    assert once(path.read_text(), functions_of((path, []))[1]) == []
    path.write_text(SOURCE.replace("LINES", "\tn++;\n" * LONG).replace("\tdefault:\n\t\treturn", "\t}\n\treturn")
                    .replace(";\n\t}\n}", ";\n}"))
    assert once(path.read_text(), functions_of((path, []))[1]) == [("plain", "all")]
