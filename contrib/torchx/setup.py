# SPDX-License-Identifier: MIT
"""Hands entry_points.txt to the package as it is, because setuptools would sort it, and TorchX's default scheduler is
the first one."""

import pathlib

import setuptools
from setuptools.command import egg_info

HERE = pathlib.Path(__file__).parent


class EggInfo(egg_info.egg_info):
    def run(self):
        super().run()
        lines = (HERE / "entry_points.txt").read_text().splitlines(keepends=True)
        self.write_file("entry points", f"{self.egg_info}/entry_points.txt",
                        "".join(line for line in lines if not line.startswith("#")))


setuptools.setup(cmdclass={"egg_info": EggInfo})
