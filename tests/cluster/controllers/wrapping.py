# SPDX-License-Identifier: MIT
"""What the stand-ins for controllers of AppWrappers share: they make what is wrapped."""

import api
import loop
from cache import key_of

PLURALS = {"Pod": "pods", "Service": "services"}


class Controller(loop.Controller):
    """A version has `process`, which does what is to be done for a wrapper now, and `labels`."""

    def __init__(self, client):
        super().__init__(client, "appwrappers", "pods")
        self.wrappers, self.pods = self.objects, self.caches["pods"]

    def labels(self, name, item):
        """What it puts on the object ITEM of the wrapper NAME."""
        raise NotImplementedError

    @staticmethod
    def path(wrapper, sub=None):
        return api.path_of("appwrappers", *key_of(wrapper), sub)

    def pods_of(self, wrapper):
        uid = wrapper["metadata"]["uid"]
        return [pod for pod in self.pods.all()
                if any(ref["uid"] == uid for ref in pod["metadata"].get("ownerReferences", ()))]

    def create(self, wrapper, template):
        """An object that is there is taken for ours; the recorded controllers look at its owner too."""
        name, meta = wrapper["metadata"]["name"], dict(template["metadata"])
        meta["labels"] = {**(meta.get("labels") or {}), **self.labels(name, meta["name"])}
        meta["ownerReferences"] = [{"apiVersion": wrapper["apiVersion"], "kind": "AppWrapper", "name": name,
                                    "uid": wrapper["metadata"]["uid"], "controller": True,
                                    "blockOwnerDeletion": True}]
        place = api.path_of(PLURALS[template["kind"]], wrapper["metadata"]["namespace"])
        try:
            self.client.post(place, {**template, "metadata": meta})
        except api.Refused as e:
            if e.code != 409:
                raise

    def write(self, wrapper, status):
        answer = self.client.put(self.path(wrapper, "status"), {**wrapper, "status": status})
        self.wrappers.learn(answer)
        self.changed.set()
