# SPDX-License-Identifier: MIT
"""What most stand-ins for controllers share: they look at each object of theirs when something has changed."""

import sys
import threading
import traceback

import api
from cache import Cache, key_of


class Controller:
    """`process` does what is to be done for an object of RESOURCE now, by what it sees of the resources WATCHED."""

    def __init__(self, client, resource, *watched):
        self.client = client
        self.changed = threading.Event()
        world = threading.RLock()
        self.caches = {name: Cache(client, name, lambda *_: self.changed.set(), world)
                       for name in (resource, *watched)}
        self.objects = self.caches[resource]

    def work(self):
        while True:
            self.changed.wait(timeout=0.5)
            self.changed.clear()
            for item in self.objects.all():
                try:
                    self.process(item)
                except (api.Refused, OSError) as e:
                    print(f"{key_of(item)}: {e}", flush=True)
                except Exception:  # a test's odd object must not end the others'
                    traceback.print_exc()

    def process(self, item):
        raise NotImplementedError


def main(controller):
    kubectl, kubeconfig = sys.argv[1:]
    controller(api.from_kubeconfig(kubectl, kubeconfig)).work()
