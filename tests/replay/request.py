# SPDX-License-Identifier: MIT
"""Requests of the Kubernetes API: the meaning of a path, and selectors."""

import re
import time
from urllib.parse import parse_qsl

import replies


class Request:
    """One request: how it arrived, and what it means (verb, resource, namespace, name, subresource).

        VERB is Kubernetes' word: list, watch, get, create, patch, delete; "" if the request is not about a resource.
        CODE is the status of the reply: None before the reply, 0 if the connection ended before it.
    """

    def __init__(self, method, path, query, headers, body=b""):
        self.method = method
        self.path = path
        self.query = dict(parse_qsl(query, keep_blank_values=True))
        self.headers = headers
        self.body = body
        self.at = time.monotonic()
        self.user = ""
        self.code = None
        self.fault = None
        self.verb = self.resource = self.namespace = self.name = self.subresource = ""

    def __repr__(self):
        query = "&".join(f"{key}={value}" for key, value in self.query.items())
        fault = f" [{self.fault}]" if self.fault else ""
        return f"{self.verb or self.method} {self.path}?{query} -> {self.code}{fault}"

    @property
    def group(self):
        """Return the API group. It is "" for the core group and for requests that are not about a resource."""
        return self.resource.group if self.resource else ""

    @property
    def is_continued(self):
        """True if the request is for a later page of a list."""
        return "continue" in self.query

    @property
    def is_metadata(self):
        """True if a list or a watch requests only the metadata of objects."""
        form = "PartialObjectMetadata" + ("List" if self.verb == "list" else "")
        return f"as={form};" in self.headers.get("Accept", "")

    @property
    def fields(self):
        """Return the field selector."""
        return self.query.get("fieldSelector", "")

    @property
    def previous(self):
        """True if the request is for the log of the run before the newest."""
        return self.query.get("previous") == "true"

    def is_(self, **wanted):
        """True if all of WANTED match: verb=, resource= (the plural), method=, name=, ..."""
        for key, value in wanted.items():
            mine = getattr(self, key)
            if key == "resource":
                mine = mine.plural if mine else ""
            if mine != value:
                return False
        return True

    def find_meaning(self, resources):
        """Set verb, resource and the other parts. RESOURCES are the resources that the server serves. Raise a Reply
        if the path is invalid."""
        parts = self.path.strip("/").split("/")
        if parts[:2] == ["api", "v1"]:
            group, version, rest = "", "v1", parts[2:]
        elif parts[0] == "apis" and len(parts) > 3:
            group, version, rest = parts[1], parts[2], parts[3:]
        else:
            return
        if rest[:1] == ["namespaces"] and len(rest) > 2:
            self.namespace, rest = rest[1], rest[2:]
        if not rest:
            return
        found = [r for r in resources if (r.group, r.version, r.plural) == (group, version, rest[0])]
        if not found or (self.namespace and not found[0].namespaced) or len(rest) > 3:
            raise replies.not_served()
        self.resource = found[0]
        self.name = rest[1] if len(rest) > 1 else ""
        self.subresource = rest[2] if len(rest) > 2 else ""
        self.verb = self._verb()

    def _verb(self):
        if self.method == "GET":
            if self.name:
                return "get"
            return "watch" if self.flag("watch") else "list"
        verb = {"POST": "create", "DELETE": "delete", "PUT": "update", "PATCH": "patch"}.get(self.method)
        if verb not in ("create", "delete", "patch") or (verb != "create" and not self.name):
            raise replies.status(405, "MethodNotAllowed", "the server does not allow this method on "
                                 "the requested resource")
        return verb

    def flag(self, name):
        return self.query.get(name, "") in ("true", "1")

    def number(self, name):
        """Return the numeric parameter NAME, or None."""
        text = self.query.get(name, "")
        if not text:
            return None
        if not re.fullmatch(r"\d{1,18}", text):
            raise replies.bad_request(f'invalid {name}: strconv.ParseInt: parsing "{text}": invalid syntax')
        return int(text)

    def matches(self):
        """Return a function that is true for the objects in the namespace that the selectors select."""
        tests = [selector_of_labels(self.query.get("labelSelector", "")),
                 selector_of_fields(self.query.get("fieldSelector", ""))]
        if self.namespace:
            tests.append(lambda obj: obj.namespace == self.namespace)
        return lambda obj: all(test(obj) for test in tests)


def selector_of_labels(text):
    """Return the label selector `a,!b,c=d,e!=f,g in (h,i),j notin (k)` as a function of an object. Raise a Reply if
    it is invalid."""
    tests = []
    for part in filter(None, re.split(r",(?![^(]*\))", text)):
        match = re.fullmatch(r"\s*(!?)([A-Za-z0-9_./-]+)\s*(?:(==?|!=)\s*([A-Za-z0-9_.-]*)"
                             r"|\s(in|notin)\s*\(([^)]*)\))?\s*", part)
        if not match or (match[1] and (match[3] or match[5])):
            raise replies.bad_request(f"unable to parse requirement: {part!r}")
        values = ({match[4]} if match[3] else
                  {value.strip() for value in match[6].split(",")} if match[5] else None)
        tests.append((match[2], values, bool(match[1]) or match[3] == "!=" or match[5] == "notin"))

    def matches(obj):
        for key, values, negated in tests:
            has = key in obj.labels if values is None else obj.labels.get(key) in values
            if has == negated:
                return False
        return True

    return matches


def selector_of_fields(text):
    """Return a field selector as a function of an object. It may use metadata.name and metadata.namespace, = and !=.
    Raise a Reply if it is invalid."""
    tests = []
    for part in filter(None, text.split(",")):
        match = re.fullmatch(r"metadata\.(name|namespace)(==?|!=)(.*)", part)
        if not match:
            raise replies.bad_request(f"field label not supported: {re.split('!?=', part)[0]}")
        tests.append((match[1], match[3], match[2] == "!="))
    return lambda obj: all((getattr(obj, key) == value) != negated for key, value, negated in tests)
