# SPDX-License-Identifier: MIT
"""The contents of .kxfs/metrics, parsed as Prometheus parses them. A text that breaks the rules of the format is an
error."""

import collections

from prometheus_client.parser import text_string_to_metric_families


class Metrics:
    """The current metrics of a mount: metrics("jobs", state="RUNNING") returns a value, or 0 if there is no such
    sample."""

    def __init__(self, kx):
        self.labels = {}  # the label names of each metric, as a set; None if it has no samples
        self._values = collections.Counter()
        for family in text_string_to_metric_families(kx.read(".kxfs", "metrics")):
            assert family.type in ("counter", "gauge") and family.documentation, family
            name = family.name + ("_total" if family.type == "counter" else "")
            assert name not in self.labels, f"{name} is there twice"
            self.labels[name] = None
            for sample in family.samples:
                assert sample.name == name, sample
                key = (name, *sorted(sample.labels.items()))
                assert key not in self._values, f"{key} is there twice"
                assert self.labels[name] in (None, set(sample.labels)), f"{name} has different labels"
                self.labels[name] = set(sample.labels)
                self._values[key] = sample.value

    def __call__(self, name, **labels):
        return self._values[(f"kxfs_{name}", *sorted(labels.items()))]

    def sum(self, name, **labels):
        """Return the sum of all samples that have these labels; they may have other labels too."""
        return sum(value for (has, *pairs), value in self._values.items()
                   if has == f"kxfs_{name}" and labels.items() <= dict(pairs).items())
