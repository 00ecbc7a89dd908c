"""Requests that no real client sends, made by a seed: recorded ones, new objects, and edits of what is there.

A :class:`Traffic` remembers what the answers showed, so that many of its writes get past the first checks: an update
has the version of an object that exists, and a list goes on with a token that was given.
"""

from __future__ import annotations

import base64
import copy
import json
import random
from collections import deque
from collections.abc import Sequence
from functools import cache
from typing import Any, TypeVar
from urllib.parse import quote

from conformance_files import API
from seamark.kinds.kind import Kind
from seamark.kinds.language.shape import ListOf, MapOf, Scalar, Shape, Type

T = TypeVar("T")

LONG = "9" * 5000  # more digits than int() reads


def nested(depth: int) -> Any:
    value: Any = {}
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


NAMES = ("a", "web", "node-a", "kubernetes", "10.96.0.9", "x" * 64)
NAMESPACES = ("default", "kube-system", "missing", "Bad_Name")
DEEP = b'{"metadata":' * 2000 + b"{}" + b"}" * 2000
RAW = (
    b"",
    b"{",
    b"null",
    b"[]",
    b"\xff\xfe",
    b'"text"',
    b"1e999",
    b"{}",
    DEEP,
    b"a: b: c",
    b'{"a":"\\ud800"}',
    b"k8s\0\0",
)
WEIRD: tuple[Any, ...] = (
    None,
    "",
    "\0",
    "x" * 300,
    "ä\u202e",
    -1,
    0,
    1.5,
    2**31,
    2**63,
    10**30,
    True,
    [],
    {},
    [None],
    {"": None},
    [{}],
    "10.96.0.9",
    "None",
    {"a": {"b": []}},
    "2026-01-01T00:00:00Z",
    "99999999999999999999",
    ["x", 1],
    2**63 - 1,
    -(2**63),
    2**31 - 1,
    1e308,
    LONG,
    f"{LONG}%",
    "0" * 5000 + "1",
    "1e999999",
    "9" * 900 + "Ei",
    "-0",
    "9999-12-31T23:59:59-23:59",
    "0001-01-01T00:00:00+23:59",
    "(a+)+$" * 20,
    "$(" * 500,
    "a.b" * 200,
    "::ffff:1.2.3.4/129",
    nested(300),
    {"f:a": {"i:99999999999999999999": {}, "k:{": {}, "v:1e999": {}}},
)
# Texts that some code reads as more than texts.
ANNOTATIONS = (
    "controller.kubernetes.io/pod-deletion-cost",
    "deployment.kubernetes.io/revision",
    "deprecated.daemonset.template.generation",
    "kubectl.kubernetes.io/last-applied-configuration",
    "endpoints.kubernetes.io/last-change-trigger-time",
    "service.kubernetes.io/topology-mode",
    "seamark.dev/start-after",
    "container.apparmor.security.beta.kubernetes.io/c",
)
# Pieces of YAML put in the place of a value.
TAGS = ("!!int", "!!float", "!!bool", "!!timestamp", "!!binary", "!!null", "!!set", "!!omap", "!!str", "!x", "&a", "*a")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
MEDIA = (
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/apply-patch+cbor",
    "text/plain",
    "",
)
ACCEPT = (
    "",
    "application/json",
    "*/*",
    "application/yaml",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/json;as=Nonsense;v=v1;g=meta.k8s.io",
    "application/vnd.kubernetes.protobuf",
    "text/html;q=x,*/*;q=0.1",
    ";;,=,;q=",
)
PARAMETERS = {
    "labelSelector": (
        f"a>{LONG}",
        "(" * 3000,
        "a=b",
        "a in (b,c),!d",
        "a>1",
        "a>x",
        "((",
        "\0",
        "ä=ö",
        "a" * 300,
        "=",
        "a notin ()",
    ),
    "fieldSelector": (
        "metadata.name=a",
        "metadata.namespace!=default",
        "spec.nodeName=",
        "nope=1",
        "\\",
        "a=b=c",
        "\0=\0",
    ),
    "limit": ("1", "2", "-1", "0", "x", "99999999999999999999", "1.5", "١", "+1", "1_0"),
    "continue": (
        "",
        "x",
        "====",
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiYVx1MDAwMCJ9",
        "eyJ2IjoxfQ",
        "ä",
        "bnVsbA",
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6OTk5OTk5OTk5OSwic3RhcnQiOiJcdTAwMDAifQ",
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIuLi8uLi94In0",
    ),
    "resourceVersion": ("", "0", "1", "5", "-1", "x", "1.0", "²", "9" * 30),
    "resourceVersionMatch": ("", "Exact", "NotOlderThan", "nope"),
    "timeoutSeconds": ("1", str(2**63 - 1), "1e9s", "-1", "x", "9" * 30),
    "dryRun": ("All", "", "Some"),
    "fieldManager": ("me", "x" * 200, "\0", "ä"),
    "fieldValidation": ("Strict", "Warn", "Ignore", "x"),
    "force": ("true", "false", "x", ""),
    "gracePeriodSeconds": (str(2**63 - 1), str(2**40), "0", "-1", "30", "x", "9" * 30),
    "propagationPolicy": ("Foreground", "Background", "Orphan", "x"),
    "orphanDependents": ("true", "false"),
    "includeObject": ("", "None", "Object", "Metadata", "x"),
    "pretty": ("true", "x"),
    "watch": ("true", "1", "false", "x"),
    "allowWatchBookmarks": ("true", "x"),
    "sendInitialEvents": ("false", "true"),
    "shardSelector": ("x", "shardRange(object.metadata.uid, '0', 'f')"),
    "container": ("c", "", "\0"),
    "tailLines": ("-1", "1", LONG),
    "%zz": ("%", "%00", "\ud7ff"),
}


# What a field of each type may hold: plain values first, then the limits.
SCALARS: dict[str, tuple[Any, ...]] = {
    "string": ("a", "web", "default", "TCP", "", "x.y/z", "10.96.0.9", "ä", "x" * 300, "\0", "{{", "^(a+)+$"),
    "int32": (1, 0, 80, -1, 2**31 - 1, -(2**31), 2**31),
    "int64": (1, 0, 30, -1, 2**63 - 1, -(2**63), 2**63),
    "float64": (0.5, 0, -1e308, 1e308),
    "bool": (True, False),
    "bytes": ("YQ==", "", "!"),
    "time": ("2026-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59", "now"),
    "microtime": ("2026-11-17T01:02:03.999999Z", "9999-12-31T23:59:59Z", ""),
    "quantity": ("1", "100m", "1Gi", "0", "-1n", "1e2147483647", "9" * 900, 7, 0.5, 10**18, "1e18"),
    "int-or-string": (1, "25%", "http", 0, 2**31 - 1, "", f"{LONG}%"),
    "any": ({"a": 1}, None, "text", 1, [], {"f:a": {}}),
}
MOST_PLACES = 450  # in a body; larger ones are not broken further, as they would grow without end
MANAGERS = ("me", "you", "kubectl-client-side-apply", "x" * 128)
# A custom kind with everything that a definition can say, which each run begins with.
DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.fuzz.example.com"},
    "spec": {
        "group": "fuzz.example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wi"], "categories": ["all"]},
        "versions": [
            {
                "name": name,
                "served": True,
                "storage": name == "v1",
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.size",
                        "statusReplicasPath": ".status.size",
                        "labelSelectorPath": ".status.selector",
                    },
                },
                "selectableFields": [{"jsonPath": ".spec.text"}],
                "additionalPrinterColumns": [
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                    {"name": "All", "type": "string", "jsonPath": ".spec.rows[*].key"},
                    {"name": "Age", "type": "date", "jsonPath": ".spec.since"},
                ],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "x-kubernetes-validations": [
                                    {"rule": "!has(self.size) || self.size >= 0"},
                                    {"rule": "!has(self.text) || !self.text.matches('^(x+)+y')"},
                                    {
                                        "rule": "!has(self.rows) || self.rows.all(r, r.key != 'bad')",
                                        "messageExpression": "'row ' + self.rows[0].key",
                                    },
                                    {"rule": "!has(oldSelf.text) || self.text == oldSelf.text"},
                                ],
                                "properties": {
                                    "size": {"type": "integer", "default": 1, "maximum": 2147483647},
                                    "text": {"type": "string", "maxLength": 100, "pattern": "^(a|b|[x-z0-9])*$"},
                                    "since": {"type": "string", "format": "date-time"},
                                    "either": {"x-kubernetes-int-or-string": True},
                                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                                    "inner": {
                                        "type": "object",
                                        "x-kubernetes-embedded-resource": True,
                                        "x-kubernetes-preserve-unknown-fields": True,
                                    },
                                    "rows": {
                                        "type": "array",
                                        "maxItems": 20,
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["key"],
                                        "items": {
                                            "type": "object",
                                            "required": ["key"],
                                            "properties": {
                                                "key": {"type": "string", "maxLength": 20},
                                                "value": {"type": "number", "nullable": True},
                                            },
                                        },
                                    },
                                    "table": {"type": "object", "additionalProperties": {"type": "string"}},
                                },
                            },
                            "status": {
                                "type": "object",
                                "properties": {"size": {"type": "integer"}, "selector": {"type": "string"}},
                            },
                        },
                    }
                },
            }
            for name in ("v1", "v2")
        ],
    },
}
WIDGETS = "/apis/fuzz.example.com/{}/namespaces/default/widgets"
WIDGET = {
    "apiVersion": "fuzz.example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "a"},
    "spec": {
        "size": 3,
        "text": "abba",
        "since": "2026-01-01T00:00:00Z",
        "either": "1",
        "free": {"x": [1, {"y": None}]},
        "inner": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}},
        "rows": [{"key": "k", "value": 1.5}, {"key": "l"}],
        "table": {"a": "b"},
    },
    "status": {"size": 1, "selector": "a=b"},
}

Request = dict[str, Any]  # arguments of :meth:`served.Served.begin`


@cache
def recorded() -> tuple[tuple[str, str, Any, str], ...]:
    """Method, path, body and media type of the recorded requests, those about a namespace of their own in "default"."""
    found = {}
    for file in sorted(API.glob("*.json")):
        for case in json.loads(file.read_text())["cases"]:
            for step in case["steps"]:
                body = step.get("body")
                if "method" not in step or (body is not None and len(json.dumps(body)) > 4000):
                    continue
                text = json.dumps([step["method"], step["path"], body, step.get("content_type", "application/json")])
                found[text.replace("$NS", "default")] = None
    requests = [(method, path, body, media) for method, path, body, media in map(json.loads, found)]
    requests += [("POST", WIDGETS.format(version), WIDGET, "application/json") for version in ("v1", "v2")] * 20
    return tuple(requests)


@cache
def kinds() -> tuple[tuple[Kind, str], ...]:
    """Every built-in kind, with the path of its collection."""
    from seamark.kinds.table import KINDS

    return tuple((kind, _collection(kind, "default")) for kind in KINDS)


def _collection(kind: Kind, namespace: str) -> str:
    resource = kind.resource
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    return f"{root}/namespaces/{namespace}/{resource.plural}" if resource.namespaced else f"{root}/{resource.plural}"


def _places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [at]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found += _places(inner, (*at, key))
    return found


class Traffic:
    """An endless row of requests.  The seed and the answers decide them, so the same server gets the same ones."""

    def __init__(self, seed: object) -> None:
        self._chance = random.Random(f"traffic {seed}")
        self._objects: deque[tuple[str, Any]] = deque(maxlen=100)  # with the path of each
        self._continue: deque[str] = deque(maxlen=20)
        self._versions: deque[str] = deque(["1"], maxlen=20)

    def _one(self, choices: Sequence[T]) -> T:
        return choices[int(self._chance.random() * len(choices))]

    def _seldom(self, times: int) -> bool:
        """True once in so many times."""
        return self._chance.random() * times < 1

    def learn(self, path: str, answer: Any) -> None:
        """Remember what an answer showed."""
        if not isinstance(answer, dict) or not isinstance(metadata := answer.get("metadata"), dict):
            return
        if metadata.get("continue"):
            self._continue.append(metadata["continue"])
        if version := metadata.get("resourceVersion"):
            self._versions.append(str(version))
        if isinstance(name := metadata.get("name"), str) and metadata.get("uid"):
            collection, found, _ = f"{path}/".partition(f"/{name}/")  # also for an answer of a subresource
            self._objects.append((f"{collection}/{name}" if found else f"{path}/{name}", answer))

    def next(self) -> Request:
        way = self._chance.random()
        if way < 0.3:
            method, path, body, media = self._recorded()
        elif way < 0.65 and self._objects:
            method, path, body, media = self._edit()
        elif way < 0.8:
            method, path, body, media = self._new()
        elif way < 0.9:
            method, path, body, media = "GET", self._one(kinds())[1] + self._one(("", "", "", *_NAMES)), None, ""
        else:
            method, path, body, media = self._one(METHODS), self._path(), self._one((None, *RAW)), self._one(MEDIA)
        if self._seldom(20):
            media = self._one(MEDIA)
        if self._seldom(20):
            method = self._one(METHODS)
        if body is not None and not isinstance(body, bytes):
            body = self._yaml(body) if "yaml" in media and self._seldom(2) else json.dumps(body).encode()
        path, _, query = path.partition("?")
        more = self._query() if not query or self._seldom(4) else ""
        query = "&".join(filter(None, (query, more)))
        return {
            "method": method,
            "path": path,
            "body": body,
            "type": media,
            "query": query,
            "headers": self._headers(),
        }

    # --- ways to make one --------------------------------------------------------------------------

    def _recorded(self) -> tuple[str, str, Any, str]:
        method, path, body, media = self._one(recorded())
        if body is None:
            return method, path, body, media
        body = self._broken(body) if self._seldom(2) else body
        if self._seldom(5):
            body = self._annotated(body)
        if media == "application/json" and self._seldom(5):
            media = "application/yaml"
        elif method == "PATCH" and self._seldom(5):
            return method, path, self._json_patch(body), "application/json-patch+json"
        return method, path, body, media

    def _edit(self) -> tuple[str, str, Any, str]:
        """A write to something that is there, or was a moment ago."""
        path, obj = self._one(self._objects)
        path += self._one(_SUFFIXES) if self._seldom(3) else ""
        method = self._one(("PUT", "PUT", "PATCH", "PATCH", "PATCH", "PATCH", "DELETE", "GET", "POST"))
        if method == "GET":
            return method, path, None, ""
        if method == "DELETE":
            options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": self._one((0, 0, 30, -1))}
            return method, path, self._broken(options) if self._seldom(2) else None, "application/json"
        body = self._broken(obj)
        if method != "PATCH":
            return method, path, body, self._one(("application/json", "application/json", "application/yaml"))
        media = self._one(MEDIA[3:7])
        if media == "application/json-patch+json":
            body = self._json_patch(obj)
        elif media == "application/apply-patch+yaml":
            if isinstance(body, dict) and isinstance(body.get("metadata"), dict) and not self._seldom(4):
                body["metadata"].pop("managedFields", None)
            path += f"?fieldManager={self._one(MANAGERS)}&force={self._one(('true', 'false'))}"
        elif isinstance(body, dict):
            keep = self._one(list(body) or [""])
            body = {key: value for key, value in body.items() if key in (keep, "metadata") or self._seldom(3)}
            if media.startswith("application/strategic") and self._seldom(3):
                body[self._one(("$patch", "$retainKeys", "$setElementOrder/x", "$deleteFromPrimitiveList/y"))] = (
                    self._one(("delete", "replace", "merge", ["x"], [{}], None, 1))
                )
        return method, path, body, media

    def _new(self) -> tuple[str, str, Any, str]:
        """An object of any kind, made from its shape."""
        kind, path = self._one(kinds())
        body = self._value(kind.shape, 0)
        group_version = f"{kind.resource.group}/{kind.resource.version}" if kind.resource.group else "v1"
        body.update(apiVersion=group_version, kind=kind.resource.kind)
        name = self._one(NAMES)
        metadata = body.get("metadata")
        body["metadata"] = {**(metadata if isinstance(metadata, dict) and self._seldom(3) else {}), "name": name}
        if self._seldom(4):
            return "PATCH", f"{path}/{name}?fieldManager=fuzz&force=true", body, "application/apply-patch+yaml"
        return "POST", path, body, "application/json"

    def _value(self, type: Type, depth: int) -> Any:
        """A value for a type: mostly one that it allows."""
        if depth and self._seldom(60):
            return copy.deepcopy(self._one(WEIRD))
        if isinstance(type, Scalar):
            choices = SCALARS[type.name]
            return self._one(choices if self._seldom(4) else choices[:3])
        if isinstance(type, ListOf):
            return [self._value(type.of, depth + 1) for _ in range(0 if depth > 7 else self._one((0, 1, 1, 2)))]
        if isinstance(type, MapOf):
            keys = ("a", "cpu", "app", "x.y/z", "ä")
            return {self._one(keys): self._value(type.of, depth + 1) for _ in range(self._one((0, 1, 1, 2)))}
        assert isinstance(type, Shape)
        made = {}
        for name, field in type.fields.items():
            if field.required or (depth < 7 and self._seldom(2 + depth)):
                made[name] = self._value(field.type, depth + 1)
        return made

    # --- pieces --------------------------------------------------------------------------------------

    def _broken(self, body: Any) -> Any:
        """The body with a few places replaced, removed, moved or doubled."""
        body = json.loads(json.dumps(body))
        if len(_places(body)) > MOST_PLACES:
            return body
        for _ in range(self._one((0, 0, 1, 1, 2, 3))):
            places = _places(body)
            place = self._one(places)
            if not place:
                continue
            parent = body
            for key in place[:-1]:
                parent = parent[key]
            other = body
            for key in self._one(places):
                other = other[key]
            new = json.loads(json.dumps(self._one((other, self._one(WEIRD), self._one(WEIRD)))))
            way = self._chance.random()
            if way < 0.5:
                parent[place[-1]] = new
            elif isinstance(parent, list):
                parent.append(new)
            else:
                if way < 0.75:
                    del parent[place[-1]]
                parent[self._one(("name", "namespace", "resourceVersion", "uid", "\0", "spec", "finalizers"))] = new
        return body

    def _annotated(self, body: Any) -> Any:
        """The body with an annotation that some code reads."""
        if isinstance(body, dict) and isinstance(body.get("metadata"), dict):
            text = self._one([value for value in WEIRD if isinstance(value, str)])
            body = {**body, "metadata": {**body["metadata"], "annotations": {self._one(ANNOTATIONS): text}}}
        return body

    def _json_patch(self, body: Any) -> bytes:
        steps = ("", "metadata", "spec", "name", "annotations", "ports", "0", "-1", "-", LONG, "~", "~1", "~0", "ä")
        places = _places(body)

        def pointer() -> str:
            if self._seldom(3):
                return "".join(f"/{self._one(steps)}" for _ in range(self._one(range(5))))
            place = [str(each).replace("~", "~0").replace("/", "~1") for each in self._one(places)]
            return "".join(f"/{each}" for each in place)

        operations = []
        for _ in range(self._one((1, 1, 2, 3, 4))):
            operation = {
                "op": self._one(("add", "remove", "replace", "move", "copy", "test", "x", "")),
                "path": pointer(),
            }
            if not self._seldom(4):
                operation["value"] = self._one(WEIRD)
            if self._seldom(2):
                operation["from"] = pointer()
            operations.append(operation)
        return json.dumps(operations).encode()

    def _yaml(self, body: Any) -> bytes:
        """The body as YAML in which a few values have tags, anchors or aliases, or are none of JSON's."""
        text = json.dumps(body)
        for _ in range(self._one((0, 1, 2, 3))):
            colon = self._one([at for at, character in enumerate(text) if character == ":"] or [0])
            text = f"{text[: colon + 1]} {self._one(TAGS)} {text[colon + 1 :].lstrip()}"
        return text.encode()

    def _token(self) -> str:
        """A continue token that was given, perhaps with something changed, or one of our own making."""
        if self._continue and self._seldom(2):
            token = self._one(self._continue)
            if self._seldom(2):
                at = int(self._chance.random() * len(token))
                token = token[:at] + self._one(("A", "-", "", "=")) + token[at + 1 :]
            return token
        fields = {
            "v": self._one(("meta.k8s.io/v1", "meta.k8s.io/v1", "", 1)),
            "rv": self._one((0, 1, -1, 2**63, LONG, None, 1.5, *map(int, self._versions))),
            "start": self._one(("", "a\0", "../x", "default/a", "\ud7ff", None, LONG)),
        }
        for name in list(fields):
            if self._seldom(8):
                del fields[name]
        return base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")

    def _query(self) -> str:
        pairs = []
        for _ in range(self._one((0, 0, 1, 1, 2, 3))):
            name = self._one(tuple(PARAMETERS))
            if name == "continue" and not self._seldom(3):
                value = self._token()
            elif name == "resourceVersion" and self._seldom(2):
                value = self._one(self._versions)
            else:
                value = self._one(PARAMETERS[name])
            pairs.append(f"{name}={quote(value)}")
        return "&".join(pairs)

    def _path(self) -> str:
        if self._seldom(2):
            kind, _ = self._one(kinds())
            return _collection(kind, self._one(NAMESPACES)) + self._one(_NAMES) + self._one(_SUFFIXES)
        if self._seldom(2):
            return "/" + "/".join(self._one(_SEGMENTS) for _ in range(self._one(range(8))))
        return "/" + "".join(chr(int(self._chance.random() * self._one((128, 0xD7FF)))) for _ in range(20))

    def _headers(self) -> dict[str, str]:
        made = {}
        for name, values in _HEADERS.items():
            if self._seldom(6):
                made[name] = self._one(values)
        if not self._seldom(10):
            made.pop("authorization", None)
            made.pop("impersonate-user", None)
        return made


_SUFFIXES = (
    "", "/status", "/scale", "/binding", "/eviction", "/finalize", "/resize", "/log", "/exec?command=a", "/attach",
    "/portforward?ports=80", "/proxy", "/proxy/x", "/ephemeralcontainers", "/token", "/approval", "/x", "//", "/..",
)  # fmt: skip
_NAMES = ("", *(f"/{name}" for name in NAMES), "/ä", "/\0", "/.", "/..", "/a b", "/%", "/a\ud7ff", "//")
_SEGMENTS = (
    "", "api", "apis", "v1", "apps", "namespaces", "default", "pods", "..", ".", "ä", "\0", "watch", "x", "openapi",
    "v3", "version", "metrics", "readyz", "fuzz.example.com", "widgets",
)  # fmt: skip
_HEADERS = {
    "accept": ACCEPT,
    "accept-encoding": ("gzip", "identity", ""),
    "user-agent": ("", "kubectl/v1.38.0", "\x00", "ä" * 300, "/"),
    "authorization": ("Bearer nobody", "Bearer", "Basic eA==", "", "Bearer \xff"),
    "impersonate-user": ("ann", "", "system:serviceaccount:default:default", "ä"),
    "content-encoding": ("gzip", "identity"),
    "upgrade": ("websocket", "SPDY/3.1"),
    "connection": ("Upgrade", "close"),
    "sec-websocket-protocol": ("v5.channel.k8s.io", "x"),
    "if-none-match": ('"x"', "*"),
}
