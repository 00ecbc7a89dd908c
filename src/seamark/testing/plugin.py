"""The pytest fixtures, the marker ``seamark`` and the option ``seamark_kubeconfig``.

pytest imports this module in every run (entry point ``pytest11``), so the fixtures import the cluster when first used.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from seamark.testing.cluster import Cluster

MARKER = (
    "seamark(nodes=1, crds=[], manifests=[], profile='plain'): the cluster that the `seamark` fixture makes; "
    "relative paths begin at pytest's root directory"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    about = "start a Seamark before the first conftest.py, and keep $KUBECONFIG naming the cluster of the running test"
    parser.addini("seamark_kubeconfig", about, type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)


# --- clusters for clients that read $KUBECONFIG when they are imported -------------------------------


class Early:
    """A cluster for the whole session, and a kubeconfig whose path stays while its content changes."""

    def __init__(self, cluster: Cluster) -> None:
        from seamark.temporary import TemporaryFolder

        self.cluster = cluster
        self._folder = TemporaryFolder()
        self.kubeconfig = self._folder.path / "kubeconfig"
        self._before = os.environ.get("KUBECONFIG")
        self.name(cluster)
        os.environ["KUBECONFIG"] = str(self.kubeconfig)

    def name(self, cluster: Cluster) -> None:
        shutil.copy(cluster.kubeconfig, self.kubeconfig)

    def end(self) -> None:
        if self._before is None:
            os.environ.pop("KUBECONFIG", None)
        else:
            os.environ["KUBECONFIG"] = self._before
        self.cluster.stop()
        self._folder.remove()


EARLY = pytest.StashKey[Early]()


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    if early_config.getini("seamark_kubeconfig"):
        from seamark.testing.cluster import Cluster

        early_config.stash[EARLY] = Early(Cluster().start())


def pytest_unconfigure(config: pytest.Config) -> None:
    if EARLY in config.stash:
        config.stash[EARLY].end()


# --- fixtures ----------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def seamark_options() -> Mapping[str, Any]:
    """What clusters are made with; override it in a conftest.py: ``return {"crds": ["deploy/crd.yaml"]}``."""
    return {}


@pytest.fixture
def seamark(request: pytest.FixtureRequest, seamark_options: Mapping[str, Any]) -> Iterator[Cluster]:
    """A private, empty cluster for this test: API server, controllers, DNS and a simulated node."""
    marker = request.node.get_closest_marker("seamark")
    yield from _cluster(request.config, {**seamark_options, **(marker.kwargs if marker else {})})


@pytest.fixture(scope="session")
def seamark_session(request: pytest.FixtureRequest, seamark_options: Mapping[str, Any]) -> Iterator[Cluster]:
    """One cluster for the whole session; ``seamark_namespace`` gives each test a namespace of its own in it."""
    early = request.config.stash.get(EARLY, None)
    if early is None:
        yield from _cluster(request.config, seamark_options)
    else:
        rooted = _rooted(request.config, seamark_options)
        early.cluster.apply(*rooted.get("crds", ()), *rooted.get("manifests", ()))
        yield early.cluster  # it began before the session's fixtures, and ends after them


@pytest.fixture
def seamark_namespace(seamark_session: Cluster) -> Iterator[str]:
    """The name of a new namespace in the session's cluster, which is deleted after the test."""
    name = seamark_session.make_namespace()
    yield name
    seamark_session.delete_namespace(name)


def _cluster(config: pytest.Config, options: Mapping[str, Any]) -> Iterator[Cluster]:
    from seamark.testing.cluster import Cluster

    try:
        made = Cluster(**_rooted(config, options))
    except TypeError as error:
        raise pytest.UsageError(f"the marker seamark, or the fixture seamark_options: {error}") from error
    with made as cluster, _named(config, cluster):
        yield cluster


def _rooted(config: pytest.Config, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options, with the paths in them made absolute."""
    made = dict(options)
    for name in ("crds", "manifests"):
        if name in made:
            made[name] = [each if isinstance(each, Mapping) else config.rootpath / each for each in made[name]]
    return made


@contextmanager
def _named(config: pytest.Config, cluster: Cluster) -> Iterator[None]:
    """Let clients find this cluster, and no other: neither the user's own nor the one that the tests run in."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
        early = config.stash.get(EARLY, None)
        if early is None:
            patch.setenv("KUBECONFIG", str(cluster.kubeconfig))
            yield
            return
        early.name(cluster)
        yield
        early.name(early.cluster)
