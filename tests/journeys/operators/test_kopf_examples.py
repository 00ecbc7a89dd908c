"""kopf's own examples, as its source package has them, run against the fixture.

The source package is fetched from the package index, once; where that cannot be reached, these tests are skipped.
Those examples that share a cluster run at the same time, in one event loop, each in a namespace of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import io
import logging
import os
import re
import tarfile
import tempfile
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from seamark.errors import NotFound
from seamark.testing import Cluster

kopf = pytest.importorskip("kopf")
kubernetes = pytest.importorskip("kubernetes")
pytest.importorskip("pykube")  # four of the examples use it

SHARING = ("01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11", "13", "14", "15", "16")
ONE = "kopf-example-1"
POD = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "main", "image": "pause"}]}}


@pytest.fixture(scope="module")
def package(request: pytest.FixtureRequest) -> Path:
    """The unpacked source package of the kopf that is installed."""
    assert request.config.cache is not None
    folder, name = Path(request.config.cache.mkdir("kopf")), f"kopf-{version('kopf')}"
    if not (folder / name).exists():
        index = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/") + "/kopf/"
        try:
            with urllib.request.urlopen(index, timeout=30) as page:
                found = re.search(rf'href="([^"]*{re.escape(name)}\.tar\.gz)', page.read().decode())
            if found is None:
                pytest.skip(f"the package index at {index} has no source of {name}")
            with urllib.request.urlopen(urllib.parse.urljoin(index, found[1]), timeout=60) as file:
                packed = io.BytesIO(file.read())
        except (OSError, urllib.error.URLError) as error:
            pytest.skip(f"the source of {name} cannot be fetched from {index}: {error}")
        with tarfile.open(fileobj=packed) as archive, tempfile.TemporaryDirectory(dir=folder) as unpacked:
            archive.extractall(unpacked, filter="data")
            with contextlib.suppress(OSError):  # another test worker was first
                os.rename(f"{unpacked}/{name}", folder / name)
    return folder / name


def load(package: Path, number: str) -> tuple[ModuleType, Any]:
    """An example, and the registry with its handlers."""
    (path,) = package.glob(f"examples/{number}-*/example.py")
    registry = type(kopf.get_default_registry())()  # it knows how to log in, as the default one does
    kopf.set_default_registry(registry)
    spec = importlib.util.spec_from_file_location(f"kopf_example_{number}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, registry


@pytest.fixture(autouse=True)
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What examples change of the whole process is put back: kopf's default registry, and loggers."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # pykube leaves the cluster's certificate there
    registry = kopf.get_default_registry()
    loggers = [logging.getLogger(name) for name in (None, *logging.root.manager.loggerDict)]
    before = [(each, each.level, each.propagate, list(each.handlers)) for each in loggers]
    yield
    kopf.set_default_registry(registry)
    for logger, level, propagate, handlers in before:
        logger.setLevel(level)
        logger.propagate = propagate
        logger.handlers[:] = handlers


@contextlib.contextmanager
def operators(*options: dict[str, Any]) -> Iterator[None]:
    """Operators in one event loop; an error of any of them is raised at the end."""
    stop = threading.Event()
    ended: list[BaseException] = []

    async def run() -> None:
        await asyncio.gather(*(kopf.operator(stop_flag=stop, **each) for each in options))

    def work() -> None:
        try:
            asyncio.run(run())
        except BaseException as error:
            ended.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    assert ended == []


class Said:
    """What operators logged about objects, by namespace."""

    def __init__(self, records: list[logging.LogRecord]) -> None:
        self._records = records

    def in_(self, namespace: str) -> list[str]:
        about = [(record, getattr(record, "k8s_ref", None) or {}) for record in list(self._records)]
        return [record.getMessage() for record, ref in about if ref.get("namespace") == namespace]


class Desk:
    """A person's hands in one cluster."""

    def __init__(self, cluster: Cluster, example: str) -> None:
        self.cluster = cluster
        self._example = yaml.safe_load(example)
        config = kubernetes.config.new_client_from_config(str(cluster.kubeconfig))
        self.custom = kubernetes.client.CustomObjectsApi(config)
        self.core = kubernetes.client.CoreV1Api(config)

    def create(self, namespace: str) -> None:
        self.custom.create_namespaced_custom_object("kopf.dev", "v1", namespace, "kopfexamples", self._example)

    def change(self, namespace: str, **spec: Any) -> None:
        where = ("kopf.dev", "v1", namespace, "kopfexamples", ONE)
        self.custom.patch_namespaced_custom_object(*where, {"spec": spec})

    def delete(self, namespace: str) -> None:
        self.custom.delete_namespaced_custom_object("kopf.dev", "v1", namespace, "kopfexamples", ONE)

    def status(self, namespace: str) -> Any:
        return self.cluster.get("kopfexamples", ONE, namespace=namespace).get("status", {})

    def is_gone(self, namespace: str) -> bool:
        try:
            self.cluster.get("kopfexamples", ONE, namespace=namespace)
        except NotFound:
            return True
        return False


@pytest.mark.filterwarnings("ignore")  # of the examples and of the libraries that they use
@pytest.mark.seamark(nodes=1, profile="plain")
def test_examples(seamark: Cluster, package: Path, caplog: pytest.LogCaptureFixture) -> None:
    seamark.apply(package / "examples/crd.yaml", package / "peering.yaml")
    desk = Desk(seamark, (package / "examples/obj.yaml").read_text())
    until = seamark.until
    modules: dict[str, ModuleType] = {}
    options = []
    for number in SHARING:
        namespace = "default" if number == "16" else f"example-{number}"  # the only one that 16 looks at
        modules[number], registry = load(package, number)
        alone: dict[str, Any] = {"standalone": True} if number != "06" else {"peering_name": "six", "priority": 7}
        options.append({"registry": registry, "namespaces": [namespace], **alone})
        if namespace != "default":
            seamark.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    seamark.apply(
        {"apiVersion": "kopf.dev/v1", "kind": "KopfPeering", "metadata": {"name": "six"}}, namespace="example-06"
    )
    for namespace in ("example-10", "example-13", "default"):
        seamark.apply({**POD, "metadata": {"name": "pod"}}, namespace=namespace)
    until(lambda: seamark.get("pods", "pod")["status"]["phase"] == "Running")
    caplog.set_level(logging.DEBUG, logger="kopf")
    said = Said(caplog.records).in_

    with operators(*options):
        places = ["default" if number == "16" else f"example-{number}" for number in SHARING]
        for place in places:
            desk.create(place)

        until(lambda: desk.status("example-01")["create_fn"] == {"message": "hello world"})
        (child,) = until(lambda: desk.core.list_namespaced_pod("example-02").items)
        assert child.metadata.owner_references[0].name == ONE
        assert until(lambda: desk.status("example-02")["create_fn"]["children"]) == [child.metadata.uid]
        until(lambda: "Creation is processed: 1 succeeded; 3 failed." in said("example-03"))
        events = lambda: [  # noqa: E731
            each for each in desk.core.list_namespaced_event("example-04").items if each.reason == "SomeReason"
        ]
        until(lambda: len(events()) == 4)
        assert {each.type for each in events()} >= {"SomeType", "Normal", "Warning"}
        until(lambda: "Handler 'create_fn_2' succeeded." in said("example-05"))
        peering = until(lambda: seamark.get("kopfpeerings", "six", namespace="example-06")["status"])
        assert [each["priority"] for each in peering.values()] == [7]
        until(lambda: "Handler 'create_fn/item2' succeeded." in said("example-07"))
        until(lambda: "Handler 'normal_event_fn' succeeded." in said("example-08"))
        until(lambda: "Something was logged here." in said("example-09"))
        until(lambda: "=== Pod killing happens in 30s." in said("example-10"))
        desk.core.delete_namespaced_pod("pod", "example-10")
        until(lambda: "=== Pod killing is cancelled!" in said("example-10"))
        until(lambda: "Creation is processed: 10 succeeded; 0 failed." in said("example-11"))
        until(lambda: "pod" in modules["13"].STOPPERS.get("example-13", {}))
        until(lambda: desk.status("default")["running-pods"] == ["default::pod"])

        desk.change("example-05", field="changed")
        until(lambda: "Handler 'field_fn/spec.field' succeeded." in said("example-05"))
        desk.change("example-11", field="changed")
        until(lambda: "Field change is satisfied." in said("example-11"))
        assert "Filter not satisfied." not in said("example-11")
        until(lambda: desk.status("example-14")["message"] == "Failed 3 times.")
        until(lambda: "=> Ping from an async daemon: field='value'" in said("example-14"))
        until(lambda: "Ping from a sync timer: field='value'" in said("example-15"))

        for place in places:
            desk.delete(place)
        for place in places:
            until(lambda place=place: desk.is_gone(place))  # type: ignore[misc]
        assert "Handler 'delete_fn_2' succeeded." in said("example-05")
        until(lambda: desk.core.list_namespaced_pod("example-02").items == [])  # collected with its owner


@pytest.mark.filterwarnings("ignore")
def test_an_embedded_operator(seamark: Cluster, package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seamark.apply(package / "examples/crd.yaml")
    module, _ = load(package, "12")
    printed = ""

    def has_printed(text: str) -> bool:
        nonlocal printed
        printed += capsys.readouterr().out
        return text in printed

    ready, stop = threading.Event(), threading.Event()
    thread = threading.Thread(target=module.kopf_thread, args=(ready, stop))
    thread.start()
    try:  # the steps of the example's main program, which only sleeps between them
        ready.wait()
        module._create_object(0)
        seamark.until(lambda: has_printed("Hello, kopf-example-0!"))
        module._delete_object(0)
        seamark.until(lambda: has_printed("Good bye, kopf-example-0!"))
    finally:
        stop.set()
        thread.join()


@pytest.mark.filterwarnings("ignore")
def test_admission(seamark: Cluster, package: Path) -> None:
    seamark.apply(package / "examples/crd.yaml")
    desk = Desk(seamark, (package / "examples/obj.yaml").read_text())
    _, registry = load(package, "17")

    @kopf.on.startup(registry=registry)  # the example's own server makes a certificate with libraries that are broken
    def use_certificate(settings: Any, **_: Any) -> None:
        certificate, key = seamark.certificate
        settings.admission.server = kopf.WebhookServer(
            addr="127.0.0.1", certfile=certificate, pkeyfile=key, cafile=seamark.ca
        )

    def refused(work: Callable[[], Any]) -> tuple[int, str]:
        with pytest.raises(kubernetes.client.ApiException) as error:
            work()
        return error.value.status, error.value.body

    with operators({"registry": registry, "clusterwide": True, "standalone": True}):
        for kind in ("validatingwebhookconfigurations", "mutatingwebhookconfigurations"):
            seamark.until(lambda kind=kind: seamark.get(kind, "auto.kopf.dev")["webhooks"])  # type: ignore[misc]
        desk.create("default")
        assert seamark.get("kopfexamples", ONE)["spec"]["injected"] == 123
        assert "Meh! I don't like it. Change the field." in refused(lambda: desk.change("default", field="wrong"))[1]
        code, sentence = refused(lambda: desk.change("default", field="not-allowed"))
        assert (code, "I'm too lazy anyway. Go away!" in sentence) == (555, True)
        where = ("kopf.dev", "v1", "default", "kopfexamples", ONE)
        status = {"status": {"field": "other"}}
        assert (
            "status.field MUST be equal to spec.field!"
            in refused(lambda: desk.custom.patch_namespaced_custom_object_status(*where, status))[1]
        )
