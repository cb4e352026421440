# SPDX-License-Identifier: MIT
"""The lint of the architecture itself: its parts find what they are there for."""

import test_architecture
from architecture import circles, floor, library_of


def test_circles_are_found():
    assert circles("abc", {("a", "b"), ("b", "c")}) == []
    assert circles("abc", {("a", "b"), ("b", "a"), ("b", "c")}) == [["a", "b"]]
    assert circles("abcd", {("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")}) == [["a", "b", "c"]]


def test_a_path_belongs_to_its_innermost_library():
    assert library_of("spec/kinds/volcano/make.c") == "spec/kinds"
    assert library_of("backend/kube/kube.c") == "backend/kube"
    assert library_of("backend/backend.c") == "backend"
    assert library_of("backend/backend.h") == "backend/impl"  # the face, declarations alone
    assert library_of("tests/unit/spec/test-x.c") is None


def test_what_stands_above_is_no_floor():
    assert "spec/base" in floor("backend/kube")
    assert "backend/kube" not in floor("spec/base")


def test_only_a_comment_above_the_struct_makes_it_plain_data(tmp_path, monkeypatch):
    (tmp_path / "a.h").write_text("/* Plain data: anybody fills it in. */\nstruct a {\n\tint x;\n};\n\n"
                                  "struct b {\n\tint x;\n};\n\n"
                                  "/* An object. */\nstruct c {\n\tint x; /* plain data */\n};\n")
    monkeypatch.setattr(test_architecture, "ROOT", tmp_path)
    assert [test_architecture.is_plain_data("a.h", s) for s in "abc"] == [True, False, False]


def test_writes_are_found(tmp_path, monkeypatch):
    (tmp_path / "a.h").write_text("struct a {\n\tint x;\n};\nstruct b {\n\tint x;\n};\nstruct c {\n\tint x;\n};\n")
    source = tmp_path / "a.c"
    source.write_text('#include "a.h"\n'
                      "int f(struct a *a, struct b *b, const struct c *c)\n"
                      "{\n\ta->x = c->x;\n\treturn b->x++;\n}\n")
    monkeypatch.setattr(test_architecture, "ROOT", tmp_path)
    assert test_architecture.written_fields(source, []) == {("a.h", "a"), ("a.h", "b")}
