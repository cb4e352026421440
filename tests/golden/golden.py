# SPDX-License-Identifier: MIT
"""Documents, their recorded manifests, and the program that makes kxfs's."""

import json
import os
import pathlib
import re
import subprocess

import yaml

HERE = pathlib.Path(__file__).parent
PROGRAM = os.environ.get("KXFS_BINARY", str(HERE.parents[1] / "build/fs/kxfs"))
KINDS = ("volcano", "mcad")
NAMES = sorted(path.name for path in (HERE / "inputs").iterdir())
NAME = "the-job"  # what a recorded job is called
PINNED = "fxtnr4nd5mcbzq"  # the suffix of all recorded names, or its beginning


class Input:
    def __init__(self, name):
        self.path = HERE / "inputs" / name / "app.yaml"
        self.text = self.path.read_bytes().decode()
        self.settings = yaml.safe_load((HERE / "inputs" / name / "opts.yaml").read_text())

    def kinds(self):
        return [kind for kind in KINDS if kind not in self.settings.get("skip", [])]

    def options(self, kind):
        """Run options and namespace."""
        options = dict(self.settings.get(kind) or {})
        return options, options.pop("namespace", None) or "default"

    @property
    def runner(self):
        return self.settings.get("via") == "runner"


def run(kind, path, namespace="default", options=None, cwd=None):
    """(status, output, errors) of a dry run; OPTIONS are given on the command line. KIND None: the file says it."""
    words = [f"{key}={str(value).lower() if isinstance(value, bool) else value}"
             for key, value in (options or {}).items()]
    words = [word.replace("\\", "\\\\").replace(",", "\\,") for word in words]
    p = subprocess.run([PROGRAM, f"--dry-run={path}", *(["-o", ",".join(words)] if words else []),
                        *([f"{kind}:{namespace}"] if kind else [])], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, check=False, timeout=60, cwd=cwd)
    return p.returncode, p.stdout.decode(), p.stderr.decode()


def load(text):
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def make(kind, path, namespace="default", options=None):
    status, out, errors = run(kind, path, namespace, options)
    assert status == 0, errors
    assert not errors
    return load(out)


def make_text(kind, source, namespace, options):
    """(status, text in which the job is called NAME, errors)"""
    status, out, errors = run(kind, source.path, namespace, options)
    return status, out.replace(load(out)["metadata"]["name"], NAME) if status == 0 else out, errors


def record(folder, names, make):
    """Write what MAKE, a function as make_text of a case's name, makes of those that it does not refuse."""
    folder.mkdir(exist_ok=True)
    for name in names:
        status, text, _ = make(name)
        if status == 0:
            (folder / f"{name}.yaml").write_text(text)


def rename(job, name, to):
    return json.loads(json.dumps(job, ensure_ascii=False).replace(name, to))


def split_id(name):
    """The name of a job without its suffix, and the suffix."""
    match = re.fullmatch(r"(?:(.*)-)?([bcdfghjklmnpqrstvwxz][bcdfghjklmnpqrstvwxz0-79]*)", name)
    assert match, name
    return match[1] or "", match[2]


def difference(ours, theirs, path=""):
    """The first place where two values differ, for people; "" if they are equal."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted({*ours, *theirs}):
            if key not in ours or key not in theirs:
                return f"{path}.{key} is only in {'ours' if key in ours else 'theirs'}"
            found = difference(ours[key], theirs[key], f"{path}.{key}")
            if found:
                return found
        return ""
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for i, (one, other) in enumerate(zip(ours, theirs)):
            found = difference(one, other, f"{path}[{i}]")
            if found:
                return found
        return ""
    same = type(ours) is type(theirs) and ours == theirs
    return "" if same else f"{path}: ours {json.dumps(ours)}, theirs {json.dumps(theirs)}"
