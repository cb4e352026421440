# SPDX-License-Identifier: MIT
"""Results of a benchmark: the figures, their goals, and when a measurement is repeated.

A figure may have a goal: for its ratio if it has a comparison, otherwise for itself. A figure that
misses its goal is listed at the end. A figure that misses LIMIT times its goal fails the run, but
not immediately, because the machine may have been busy. After a pause, the whole measurement is
repeated for both sides, up to four times, and the smallest value of each side counts."""

import dataclasses
import time

LIMIT = 2  # factor for the goal
PAUSES = (2, 5, 10, 20)  # seconds before a measurement is repeated
PATIENCE = 120  # seconds that a run spends on repetitions in total


@dataclasses.dataclass(frozen=True)
class Figure:
    """OURS, and THEIRS if it is compared with OTHER; both in UNIT."""

    what: str
    unit: str
    ours: float
    goal: float | None = None
    other: str = ""
    theirs: float | None = None

    @property
    def value(self):
        """Return the number to which the goal applies."""
        return self.ours if self.theirs is None else self.ours / self.theirs

    @property
    def name(self):
        return f"{self.what}, beside {self.other}" if self.other else self.what

    def holds(self, times=1):
        return self.goal is None or self.value <= times * self.goal

    def least(self, again):
        """Return the smaller values of this figure and of its repetition AGAIN."""
        theirs = None if self.theirs is None else min(self.theirs, again.theirs)
        return dataclasses.replace(self, ours=min(self.ours, again.ours), theirs=theirs)

    def __str__(self):
        beside = f"{self.other:22} {self.theirs:10.2f} {self.unit:4} {self.value:8.3f}" if self.other else f"{'':47}"
        return f"{self.what:36} {self.ours:10.2f} {self.unit:4} {beside} {self.goal or ''}".rstrip()


HEAD = f"{'what':36} {'kxfs':>10} {'':4} {'beside':22} {'':15} {'ratio':>8} goal"


class Figures:
    """All figures of a run, in order. Each is printed immediately."""

    def __init__(self):
        self.all = []
        self.patience = PATIENCE

    def take(self, *figures):
        """Add figures that a repetition would not change: memory, counts."""
        for figure in figures:
            print(figure, flush=True)
        self.all += figures

    def measure(self, call, *args):
        """Add the figures that CALL returns or yields. It may be called again."""
        found = list(call(*args))
        for pause in PAUSES:
            bad = [figure for figure in found if not figure.holds(LIMIT)]
            if not bad or self.patience <= 0:
                break
            for figure in bad:
                print(f"measured again: {figure.name} is {figure.value:.2f}, the limit {LIMIT * figure.goal:g}", flush=True)
            begin = time.monotonic()
            time.sleep(pause)
            found = [figure.least(again) for figure, again in zip(found, call(*args), strict=True)]
            self.patience -= time.monotonic() - begin
        self.take(*found)

    def short(self):
        """Return sentences about figures that miss their goal."""
        return [f"{figure.name}: {figure.value:.2f}, the goal is {figure.goal:g}"
                for figure in self.all if not figure.holds()]

    def wrong(self):
        """Return sentences about figures that miss LIMIT times their goal."""
        return [f"{figure.name}: {figure.value:.2f} is more than {LIMIT * figure.goal:g}, {LIMIT} times the goal"
                for figure in self.all if not figure.holds(LIMIT)]
