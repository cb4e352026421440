# SPDX-License-Identifier: MIT
"""embed.py OUTPUT FILE...: a C file that has the texts of kind files, so that a program is whole without its share/."""
import sys
from pathlib import Path

with open(sys.argv[1], "w") as out:
    out.write('/* Made by share/kinds/embed.py. */\n#include "spec/kinds/kinds.h"\n\n'
              "const struct spec_shipped_kind spec_shipped_kinds[] = {\n")
    for path in map(Path, sys.argv[2:]):
        out.write(f'\t{{"{path.stem}",\n')
        for line in path.read_text().splitlines():
            text = line.replace("\\", "\\\\").replace('"', '\\"')
            out.write(f'\t "{text}\\n"\n')
        out.write("\t},\n")
    out.write("\t{0},\n};\n")
