# SPDX-License-Identifier: MIT
"""What each function of the program calls, as clang reads it."""

import collections
import concurrent.futures
import functools

import kept
from files import ROOT, name_of
from test_architecture import compile_arguments

# UNUSED are its parameters that it does not use. CALLS and TAKEN (whose address it takes) count names; CASES are the
# calls of them that stand in a `switch`.
Function = collections.namedtuple("Function", "static question lines unused calls taken cases")


def functions_of(row):
    """Those of a source, by name; None: what stands outside of functions."""
    from clang.cindex import CursorKind, Index

    source, arguments = row
    found = {}

    def plain(cursor):
        while cursor is not None and cursor.kind in (CursorKind.UNEXPOSED_EXPR, CursorKind.PAREN_EXPR):
            cursor = next(iter(cursor.get_children()), None)
        return cursor

    def walk(cursor, fn, in_switch):
        if cursor.kind == CursorKind.DECL_REF_EXPR and cursor.referenced:
            if cursor.referenced.kind == CursorKind.FUNCTION_DECL:
                fn.taken[cursor.referenced.spelling] += 1
            if cursor.referenced.kind == CursorKind.PARM_DECL and cursor.spelling in fn.unused:
                fn.unused.remove(cursor.spelling)
        in_switch |= cursor.kind == CursorKind.SWITCH_STMT
        children = list(cursor.get_children())
        if cursor.kind == CursorKind.CALL_EXPR and children:
            callee = plain(children[0])
            if callee is not None and callee.kind == CursorKind.DECL_REF_EXPR and \
                    callee.referenced.kind == CursorKind.FUNCTION_DECL:
                fn.calls[callee.referenced.spelling] += 1
                fn.cases[callee.referenced.spelling] += in_switch
                children = children[1:]
        for child in children:
            walk(child, fn, in_switch)

    def new(static, question=False, lines=0, unused=()):
        return Function(static, question, lines, list(unused), *(collections.Counter() for _ in range(3)))

    for cursor in Index.create().parse(str(source), args=arguments).cursor.get_children():
        if not cursor.location.file:
            continue
        if cursor.kind == CursorKind.FUNCTION_DECL and cursor.is_definition():
            fn = new(cursor.storage_class.name == "STATIC", cursor.result_type.spelling in ("bool", "_Bool"),
                     cursor.extent.end.line - cursor.extent.start.line + 1,
                     [argument.spelling for argument in cursor.get_arguments()])
            walk(cursor, fn, False)
            if cursor.location.file.name == str(source) or not fn.static:
                found[cursor.spelling] = fn
        elif cursor.kind == CursorKind.VAR_DECL and cursor.location.file.name == str(source):
            walk(cursor, found.setdefault(None, new(True)), False)
    return source, found


def kept_functions(row):
    """The same, of what is kept of it if that is there."""
    def find():
        return [[name, *fn] for name, fn in functions_of(row)[1].items()]

    rows = kept.kept("functions", row[0], [__file__], find)
    return row[0], {name: Function(*plain, *map(collections.Counter, counts)) for name, *plain, counts
                    in ((*cells[:5], cells[5:]) for cells in rows)}


@functools.cache
def all_functions(tops):
    """{file: {name: function}} of all sources below TOPS."""
    rows = [(s, a) for s, a in compile_arguments().items() if s.suffix == ".c" and name_of(s).startswith(tops)]
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        return {name_of(source): found for source, found in pool.map(kept_functions, rows, chunksize=4)}
