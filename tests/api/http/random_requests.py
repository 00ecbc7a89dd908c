"""Requests nobody would send on purpose: recorded ones, and what becomes of them when pieces are broken."""

from __future__ import annotations

import base64
import copy
import json
from functools import cache
from typing import Any
from urllib.parse import quote

from hypothesis import strategies as st

from conformance_files import API

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
    "sendInitialEvents": ("false",),
    "%zz": ("%", "%00", "\ud7ff"),
}


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
    return tuple((method, path, body, media) for method, path, body, media in map(json.loads, found))


@cache
def collections() -> tuple[str, ...]:
    """Every path that holds objects."""
    from seamark.kinds.table import KINDS

    found = []
    for kind in KINDS:
        resource = kind.resource
        root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
        found.append(f"{root}/{resource.plural}")
        if resource.namespaced:
            found += [f"{root}/namespaces/{namespace}/{resource.plural}" for namespace in NAMESPACES]
    return tuple(found)


def _places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [at]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found += _places(inner, (*at, key))
    return found


@st.composite
def broken(draw: st.DrawFn, body: Any) -> Any:
    """The body with a few places replaced or removed."""
    body = json.loads(json.dumps(body))
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.sampled_from(_places(body)))
        new = copy.deepcopy(draw(st.sampled_from(WEIRD)))
        if not place:
            continue
        parent = body
        for key in place[:-1]:
            parent = parent[key]
        if draw(st.booleans()):
            parent[place[-1]] = new
        elif isinstance(parent, dict):
            del parent[place[-1]]
            parent[draw(st.sampled_from(("name", "namespace", "resourceVersion", "uid", "\0", "spec")))] = new
        else:
            parent.append(new)
    return body


@st.composite
def annotated(draw: st.DrawFn, body: Any) -> Any:
    """The body with an annotation that some code reads."""
    if isinstance(body, dict) and isinstance(body.get("metadata"), dict):
        weird = [value for value in WEIRD if isinstance(value, str)]
        text = draw(st.one_of(st.sampled_from(weird), st.text(max_size=5)))
        body = {**body, "metadata": {**body["metadata"], "annotations": {draw(st.sampled_from(ANNOTATIONS)): text}}}
    return body


@st.composite
def json_patches(draw: st.DrawFn) -> bytes:
    step = st.sampled_from(
        (
            "",
            "metadata",
            "spec",
            "name",
            "annotations",
            "containers",
            "ports",
            "0",
            "-1",
            "-",
            LONG,
            "~",
            "~1",
            "~0",
            "ä",
        )
    )
    path = st.lists(step, max_size=5).map(lambda steps: "".join(f"/{each}" for each in steps))
    names = st.sampled_from(("add", "remove", "replace", "move", "copy", "test", "x", ""))
    operation = st.fixed_dictionaries(
        {"op": names, "path": path}, optional={"from": path, "value": st.sampled_from(WEIRD)}
    )
    return json.dumps(draw(st.lists(operation, max_size=4))).encode()


@st.composite
def yaml_of(draw: st.DrawFn, body: Any) -> bytes:
    """The body as YAML in which a few values have tags, anchors or aliases, or are none of JSON's."""
    text = json.dumps(body)
    for _ in range(draw(st.integers(0, 3))):
        colon = draw(st.sampled_from([at for at, character in enumerate(text) if character == ":"] or [0]))
        text = f"{text[: colon + 1]} {draw(st.sampled_from(TAGS))} {text[colon + 1 :].lstrip()}"
    return text.encode()


def _token(fields: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")


_tokens = st.fixed_dictionaries(
    {},
    optional={
        "v": st.sampled_from(("meta.k8s.io/v1", "", 1)),
        "rv": st.sampled_from((0, 1, -1, 2**63, LONG, None, 1.5)),
        "start": st.sampled_from(("", "a\0", "../x", "default/a", "\ud7ff", None, LONG)),
    },
).map(_token)


_queries = st.lists(
    st.sampled_from(sorted(PARAMETERS)).flatmap(
        lambda name: st.tuples(
            st.just(name),
            st.one_of(st.sampled_from(PARAMETERS[name]), _tokens)
            if name == "continue"
            else st.sampled_from(PARAMETERS[name]),
        )
    ),
    max_size=3,
).map(lambda pairs: "&".join(f"{name}={quote(value)}" for name, value in pairs))

_suffixes = st.sampled_from(
    ("", "", "/status", "/scale", "/binding", "/eviction", "/finalize", "/resize", "/log", "/x", "//", "/..")
)
_names = st.sampled_from(
    ("", *(f"/{name}" for name in NAMES), "/ä", "/\0", "/.", "/..", "/a b", "/%", "/a\ud7ff", "//")
)
_paths = st.one_of(
    st.tuples(st.deferred(lambda: st.sampled_from(collections())), _names, _suffixes).map("".join),
    st.lists(
        st.sampled_from(
            ("", "api", "apis", "v1", "apps", "namespaces", "default", "pods", "..", ".", "ä", "\0", "watch", "x")
        ),
        max_size=7,
    ).map(lambda parts: "/" + "/".join(parts)),
    st.text(max_size=20).map(lambda text: f"/{text}"),
)

_headers = st.fixed_dictionaries(
    {},
    optional={
        "accept": st.sampled_from(ACCEPT),
        "accept-encoding": st.sampled_from(("gzip", "identity", "")),
        "user-agent": st.sampled_from(("", "kubectl/v1.38.0", "\x00", "ä" * 300, "/")),
        "authorization": st.sampled_from(("Bearer nobody", "Bearer", "Basic eA==", "", "Bearer \xff")),
    },
)


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    """Arguments of :meth:`served.Served.begin`."""
    if draw(st.integers(0, 9)) < 6:
        method, path, body, media = draw(st.deferred(lambda: st.sampled_from(recorded())))
        if body is not None:
            body = draw(broken(body))
            if draw(st.integers(0, 4)) == 0:
                body = draw(annotated(body))
            if media in ("application/json", "application/apply-patch+yaml") and draw(st.integers(0, 4)) == 0:
                media = "application/yaml" if media == "application/json" else media
                body = draw(yaml_of(body))
            elif method == "PATCH" and draw(st.integers(0, 4)) == 0:
                body, media = draw(json_patches()), "application/json-patch+json"
            else:
                body = json.dumps(body).encode()
        if draw(st.integers(0, 9)) == 0:
            method = draw(st.sampled_from(METHODS))
    else:
        method, path = draw(st.sampled_from(METHODS)), draw(_paths)
        body, media = draw(st.sampled_from((None, *RAW))), draw(st.sampled_from(MEDIA))
    if draw(st.integers(0, 9)) == 0:
        media = draw(st.sampled_from(MEDIA))
    return {
        "method": method,
        "path": path,
        "body": body,
        "type": media,
        "query": draw(_queries),
        "headers": draw(_headers),
    }
