# SPDX-License-Identifier: MIT
"""Documents, their recorded manifests, and the calls that make those of kxfs.

A file of cases has one YAML document per case, after a line `--- # NAME`. inputs.yaml contains the
documents and the options. volcano.yaml and mcad.yaml contain what TorchX makes of them, or its
error. appwrapper.yaml, jobset.yaml and job.yaml contain what kxfs makes."""

import functools
import json
import os
import pathlib
import re
import subprocess
import tempfile

import yaml

HERE = pathlib.Path(__file__).parent
PROGRAM = os.environ.get("KXFS_BINARY", str(HERE.parents[1] / "build/fs/kxfs"))
KINDS = ("volcano", "mcad")
NAME = "the-job"  # the name of recorded jobs
PINNED = "fxtnr4nd5mcbzq"  # the suffix of all recorded names, or its start


def cases_of(name):
    """Return {case: its text} of a file of cases."""
    parts = re.split(r"^--- # (\S+)\n", (HERE / f"{name}.yaml").read_text(), flags=re.M)
    assert not parts[0] and len(set(parts[1::2])) == len(parts[1::2])
    return dict(zip(parts[1::2], parts[2::2]))


@functools.cache
def values_of(name):
    """Return {case: value of its text}. Callers must not change the values."""
    return {case: load(text) for case, text in cases_of(name).items()}


@functools.cache
def folder():
    """Return a temporary directory for documents."""
    return tempfile.TemporaryDirectory(prefix="kxfs-golden-", dir=os.environ.get("KXFS_TEST_DIR"))


class Input:
    def __init__(self, name):
        self.settings = dict(values_of("inputs")[name])
        self.text = self.settings.pop("app")
        self.path = pathlib.Path(folder().name, name, "app.yaml")
        self.path.parent.mkdir(exist_ok=True)
        self.path.write_bytes(self.text.encode())

    def kinds(self):
        return [kind for kind in KINDS if kind not in self.settings.get("skip", [])]

    def options(self, kind):
        """Return (run options, namespace)."""
        options = dict(self.settings.get(kind) or {})
        return options, options.pop("namespace", None) or "default"

    @property
    def runner(self):
        return self.settings.get("via") == "runner"


def run(kind, path, namespace="default", options=None, cwd=None):
    """Return (status, output, errors) of a dry run with OPTIONS on the command line. If KIND is
    None, the file names it."""
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
    """Return (status, text with the job's name replaced by NAME, errors)."""
    status, out, errors = run(kind, source.path, namespace, options)
    return status, out.replace(load(out)["metadata"]["name"], NAME) if status == 0 else out, errors


def record(file, names, make):
    """Write a file of the cases NAMES. MAKE(name), a function like make_text, returns their texts.
    Leave out refused cases."""
    made = {name: make(name) for name in sorted(names)}
    (HERE / f"{file}.yaml").write_text("".join(f"--- # {name}\n{text}" for name, (status, text, _) in made.items() if status == 0))


def rename(job, name, to):
    return json.loads(json.dumps(job, ensure_ascii=False).replace(name, to))


def split_id(name):
    """Return (the name of a job without its suffix, the suffix)."""
    match = re.fullmatch(r"(?:(.*)-)?([bcdfghjklmnpqrstvwxz][bcdfghjklmnpqrstvwxz0-79]*)", name)
    assert match, name
    return match[1] or "", match[2]


def difference(ours, theirs, path=""):
    """Describe the first difference between two values. Return "" if they are equal."""
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


NAMES = sorted(values_of("inputs"))
