"""What Events about Services need: the ClusterRole in ``deploy/why`` and the rights of the part of ``up``, no more."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import catalogue_cases
import yaml
from catalogue_clusters import NOW, build, clock

from recording_cluster import RecordingCluster
from seamark.api.rbac import components
from seamark.cli.running.controllers import parser
from seamark.cli.settings import config_of
from seamark.why.look import Survey, look_at_all
from seamark.why.telling.following import WATCHED, surveys
from seamark.why.telling.notices import REFRESH, tell
from virtual_time import HastyClock

DEPLOY = Path(__file__).parents[3] / "deploy" / "why"


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / name).read_text()))


def of(role: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {
        (verb, group, resource)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


async def test_what_is_granted_is_what_is_called() -> None:
    called: set[tuple[str, str, str]] = set()
    for path in one_of_each():
        cluster = RecordingCluster(await build(catalogue_cases.load(path)))
        await tell(cluster, await look_at_all(cluster, "", clock=clock()), clock=clock())
        await tell(cluster, await look_at_all(cluster, "", clock=clock()), clock=HastyClock(NOW + 2 * REFRESH))
        await tell(cluster, Survey((), 0), clock=clock())
        following = surveys(cluster, "", clock=clock())
        await anext(following)
        while len({call for call in cluster.calls if call[0] == "watch"}) < len(WATCHED):
            await asyncio.sleep(0)
        await following.aclose()
        called |= cluster.calls
    (granted,) = [of(each) for each in documents("rbac.yaml") if each["kind"] == "ClusterRole"]
    (own,) = [of(each) for each in components.cluster_roles() if each["metadata"]["name"] == "seamark:why"]
    assert granted == called
    assert own == called


def one_of_each() -> list[Path]:
    """A set-up of each kind, by the first word of its name; and those that ask for something of their own."""
    first: dict[str, Path] = {}
    for path in catalogue_cases.everything():
        word = path.stem.partition("-")[0]
        if word not in first and not catalogue_cases.load(path).offline and "$repeat" not in path.read_text():
            first[word] = path
    return list(first.values())


def test_the_deployment_asks_for_why_alone() -> None:
    (deployment,) = documents("deployment.yaml")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    verb, *arguments = container["args"]
    config = config_of(parser().parse_args(arguments), "controllers")
    assert verb == "controllers"
    assert config.discovery.controllers == ("why",)
    names = [
        name
        for role in documents("rbac.yaml")
        if role["kind"] == "Role"
        for rule in role["rules"]
        for name in rule.get("resourceNames", ())
    ]
    assert names == [config.election.name]
