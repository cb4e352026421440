#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The inputs of the fuzz targets are in corpus.jsonl, one per line, sorted by target.

	tests/fuzz/corpus.py unpack TARGET DIRECTORY      write each input to its own file, for a fuzzer
	tests/fuzz/corpus.py add TARGET FILE...           add inputs under their files' names

A line is {"target": TARGET, "name": NAME, "text": TEXT}. If the input is not UTF-8, "latin1"
replaces "text", and each of its characters is the byte with that number. replay.c reads the same
file."""

import json
import pathlib
import sys

CORPUS = pathlib.Path(__file__).resolve().with_name("corpus.jsonl")


def all_inputs():
    """Return {(target, name): bytes}."""
    found = {}
    for line in CORPUS.read_text(encoding="utf-8").split("\n")[:-1]:
        row = json.loads(line)
        key = row["target"], row["name"]
        assert key not in found, key
        found[key] = row["text"].encode() if "text" in row else row["latin1"].encode("latin-1")
    return found


def inputs(target):
    """Return {name: bytes} of a target."""
    return {name: data for (its, name), data in all_inputs().items() if its == target}


def line_of(target, name, data):
    row = {"target": target, "name": name}
    try:
        row["text"] = data.decode()
    except UnicodeDecodeError:
        row["latin1"] = data.decode("latin-1")
    # Escape line ends and invisible characters too.
    text = json.dumps(row, ensure_ascii=False)
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text) + "\n"


def add(target, files):
    known = all_inputs() | {(target, pathlib.Path(file).name): pathlib.Path(file).read_bytes() for file in files}
    CORPUS.write_text("".join(line_of(*key, data) for key, data in sorted(known.items())), encoding="utf-8")


def unpack(target, directory):
    pathlib.Path(directory).mkdir(exist_ok=True)
    for name, data in inputs(target).items():
        pathlib.Path(directory, name).write_bytes(data)


if __name__ == "__main__":
    if len(sys.argv) >= 4 and sys.argv[1] == "add":
        add(sys.argv[2], sys.argv[3:])
    elif len(sys.argv) == 4 and sys.argv[1] == "unpack":
        unpack(*sys.argv[2:])
    else:
        sys.exit(__doc__)
