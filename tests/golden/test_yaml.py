# SPDX-License-Identifier: MIT
"""The YAML of every manifest has the same value for a parser of YAML 1.2 (ruamel.yaml) and one of
YAML 1.1 (PyYAML). test_golden.py compares PyYAML's values with TorchX's JSON."""

import json

import pytest
import ruamel.yaml
import yaml
from golden import NAMES, Input, difference, run

CASES = [(name, kind) for name in NAMES for kind in Input(name).kinds()]


def load_12(text):
    return ruamel.yaml.YAML(typ="safe", pure=True).load(text)


READERS = {"yaml-1.1": yaml.safe_load, "yaml-1.2": load_12}


@pytest.mark.parametrize("name,kind", CASES, ids=[f"{n}-{k}" for n, k in CASES])
def test_same(name, kind):
    source = Input(name)
    options, namespace = source.options(kind)
    status, text, errors = run(kind, source.path, namespace, options)
    assert bool(status) == bool(errors)
    if status == 0:
        found = difference(load_12(text), yaml.safe_load(text))
        assert not found


# Texts that YAML parsers interpret differently, as values and as keys. Some parsers treat U+0085
# and the like as line breaks.
STRANGE = ["", " ", "yes", "No", "on", "y", "N", "null", "~", "true", "010", "0o10", "0x1F", "1_000", "1:30", "1e3", "1.5e+3", ".5",
           "+1", "-0", ".inf", ".NaN", "2024-01-01", "2024-01-01T00:00:00Z", "=", "<<", "- a", "a: b", "a #b", "#c", "{}", "[]", "*x",
           "&x", "!t", "%d", "@a", "`b`", "? y", "|", ">", "'", '"', "\\", "a\n", "a\n\nb\n\n", "\n", " a\nb", "a \nb", "\ta", "a\tb",
           "line1\r\nline2", "tab\there", "\x07\x1b", "\x7f", "\x85", "\xa0", "\u2028", "\u2029", "\ufeff", "日本 😀", "---", "...", "--- a",
           "x" * 300, "word " * 60, "a\n" * 30, "# a\nb", "  indented\nnot", "a:", ":a", "a,b", "[a", "a]", "{a", "12e03", "0b11", "190:20:30"]


@pytest.mark.parametrize("reader", READERS)
def test_strange_text(reader, tmp_path):
    app = {"name": "strange", "roles": [{"name": "r", "image": "i", "entrypoint": "e", "args": STRANGE,
                                         "metadata": {"kubernetes": {"metadata": {"annotations": {
                                             f"k{text}": text for text in STRANGE}}}}}],
           "scheduler_args": {"no_annotations": True}}
    path = tmp_path / "app.json"
    path.write_text(json.dumps(app))
    status, text, errors = run("volcano", path, options={"queue": "q"})
    assert status == 0, errors
    job = READERS[reader](text)
    pod = job["spec"]["tasks"][0]["template"]
    assert pod["spec"]["containers"][0]["command"] == ["e", *STRANGE]
    annotations = dict(pod["metadata"]["annotations"])
    assert annotations.pop("sidecar.istio.io/inject") == "false"
    assert annotations == {f"k{text}": text for text in STRANGE}
