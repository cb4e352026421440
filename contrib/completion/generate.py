#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""generate.py HELP TEMPLATE: print TEMPLATE filled in with the options of the file HELP.

HELP is the output of kxfs --help, which is generated from the table that parses the options. So the
script completes exactly what the program accepts."""

import pathlib
import re
import sys

ROW = re.compile(r"^  (\S.*?)  +(\S.*)$", re.M)


class Option:
    """A row of --help: "-V, --version", "state=DIR", "linger"."""

    def __init__(self, head, text):
        self.names = [name.split("=")[0].split(" ")[0] for name in head.split(", ") if name]
        self.is_flag = head.startswith("-")
        self.arg = (re.search(r"[= ](\S+)$", head) or [None, None])[1] if "=" in head or head.startswith("-o") else None
        self.choices = self.arg.split("|") if self.arg and "|" in self.arg else []
        self.text = text

    @property
    def word(self):
        """Return the word to complete, with '=' if it takes a value."""
        return self.names[-1] + ("=" if self.arg else "")


def read_options(text):
    found = {}
    for head, words in ROW.findall(text):
        found.setdefault(head, Option(head, words))
    return [o for o in found.values() if o.is_flag], [o for o in found.values() if not o.is_flag]


def quoted(text):
    """Return TEXT escaped for single quotes of bash and zsh."""
    return text.replace("'", "'\\''")


def bash(flags, words):
    names = [f"{name}=" if flag.arg and name.startswith("--") else name for flag in flags for name in flag.names]
    return {
        "FLAGS": " ".join(names),
        "WORDS": " ".join(o.word for o in words),
        "CHOICES": " ".join(f'[{o.names[0]}]="{" ".join(o.choices)}"' for o in words if o.choices),
        "DIRECTORIES": " | ".join(f"{o.word}*" for o in words if o.arg == "DIR"),
        "FILES": " | ".join(f"{o.word}*" for o in words if o.arg == "FILE"),
    }


def zsh_text(text):
    return quoted(re.sub(r"([\[\]:\\])", r"\\\1", text))


def zsh_action(option):
    if option.choices:
        return f"({' '.join(option.choices)})"
    return {"DIR": "_directories", "FILE": "_files"}.get(option.arg, " ")


def zsh(flags, words):
    arguments = []
    for o in flags:
        others = f"({' '.join(o.names)})" if len(o.names) > 1 else ""
        for name in o.names:
            if name == "-o":
                arguments.append(f"'*-o+[{zsh_text(o.text)}]:options:_kxfs_options'")
            elif o.arg:
                arguments.append(f"'{name}=[{zsh_text(o.text)}]:{o.arg}:_files'")
            else:
                arguments.append(f"'{others}{name}[{zsh_text(o.text)}]'")
    values = [f"'{o.names[0]}[{zsh_text(o.text)}]" + (f":{o.arg}:{zsh_action(o)}'" if o.arg else "'") for o in words]
    return {"ARGUMENTS": " \\\n\t".join(arguments), "VALUES": " \\\n\t\t".join(values)}


def fish_quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish(flags, words):
    lines, cases = [], []
    for o in flags:
        if o.names == ["-o"]:
            continue
        names = " ".join(f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in o.names)
        lines.append(f"complete -c kxfs {names} {'-r -F ' if o.arg else ''}-d {fish_quoted(o.text)}")
    for o in words:
        if o.choices:
            act = f"printf $before'{o.word}%s\\n' {' '.join(o.choices)}"
        elif o.arg == "DIR":
            act = f"printf $before'{o.word}%s\\n' (__fish_complete_directories (string replace '{o.word}' '' -- $word) '')"
        elif o.arg == "FILE":
            act = f"printf $before'{o.word}%s\\n' (__fish_complete_path (string replace '{o.word}' '' -- $word))"
        else:
            continue
        cases.append(f"        case '{o.word}*'\n            {act}")
    pairs = " ".join(f"{o.word} {fish_quoted(o.text)}" for o in words)
    return {"FLAGS": "\n".join(lines), "CASES": "\n".join(cases), "PAIRS": pairs}


def main():
    help_file, template = map(pathlib.Path, sys.argv[1:])
    shell = {"kxfs.bash.in": bash, "_kxfs.in": zsh, "kxfs.fish.in": fish}[template.name]
    fields = shell(*read_options(help_file.read_text(encoding="utf-8")))
    text = template.read_text(encoding="utf-8")
    sys.stdout.write(re.sub(r"@([A-Z]+)@", lambda m: fields[m[1]], text))


if __name__ == "__main__":
    main()
