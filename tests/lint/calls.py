# SPDX-License-Identifier: MIT
"""The calls that each function of the program makes, as parsed by clang."""

import collections
import concurrent.futures
import functools

import kept
from files import name_of
from test_architecture import compile_arguments

# UNUSED: the function's unused parameters. CALLS: a count of the functions that it calls. TAKEN:
# the functions whose address it takes.
Function = collections.namedtuple("Function", "static unused calls taken")


def functions_of(row):
    """Return the functions of a source by name. None stands for code outside functions."""
    from clang.cindex import CursorKind, Index

    source, arguments = row
    found = {}

    def plain(cursor):
        while cursor is not None and cursor.kind in (CursorKind.UNEXPOSED_EXPR, CursorKind.PAREN_EXPR):
            cursor = next(iter(cursor.get_children()), None)
        return cursor

    def walk(cursor, fn):
        if cursor.kind == CursorKind.DECL_REF_EXPR and cursor.referenced:
            if cursor.referenced.kind == CursorKind.FUNCTION_DECL:
                fn.taken[cursor.referenced.spelling] += 1
            if cursor.referenced.kind == CursorKind.PARM_DECL and cursor.spelling in fn.unused:
                fn.unused.remove(cursor.spelling)
        children = list(cursor.get_children())
        if cursor.kind == CursorKind.CALL_EXPR and children:
            callee = plain(children[0])
            if callee is not None and callee.kind == CursorKind.DECL_REF_EXPR and \
                    callee.referenced.kind == CursorKind.FUNCTION_DECL:
                fn.calls[callee.referenced.spelling] += 1
                children = children[1:]
        for child in children:
            walk(child, fn)

    def new(static, unused=()):
        return Function(static, list(unused), collections.Counter(), collections.Counter())

    for cursor in Index.create().parse(str(source), args=arguments).cursor.get_children():
        if not cursor.location.file:
            continue
        if cursor.kind == CursorKind.FUNCTION_DECL and cursor.is_definition():
            fn = new(cursor.storage_class.name == "STATIC", [argument.spelling for argument in cursor.get_arguments()])
            walk(cursor, fn)
            if cursor.location.file.name == str(source) or not fn.static:
                found[cursor.spelling] = fn
        elif cursor.kind == CursorKind.VAR_DECL and cursor.location.file.name == str(source):
            walk(cursor, found.setdefault(None, new(True)))
    return source, found


def kept_functions(row):
    """Return the functions of a source by name, from the cache if possible."""
    def find():
        return [[name, *fn] for name, fn in functions_of(row)[1].items()]

    rows = kept.kept("functions", row[0], [__file__], find)
    return row[0], {name: Function(static, unused, collections.Counter(calls), collections.Counter(taken))
                    for name, static, unused, calls, taken in rows}


@functools.cache
def all_functions(tops):
    """Return {file: {name: function}} of all sources below TOPS."""
    rows = [(s, a) for s, a in compile_arguments().items() if s.suffix == ".c" and name_of(s).startswith(tops)]
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        return {name_of(source): found for source, found in pool.map(kept_functions, rows, chunksize=4)}
