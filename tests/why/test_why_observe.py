"""What may be read: nothing but get and list, each list once; what is refused is named."""

import collections

import catalogue_cases
import msgspec
import pytest
from catalogue_clusters import NOW, build, clock

from seamark import errors
from seamark.access.cluster import Identity, Unreadable
from seamark.kinds.resource import ENDPOINT_SLICES, ENDPOINTS, INGRESSES, NETWORK_POLICIES, NODES, PODS, SERVICES
from seamark.why.explain_pod import explain_pod
from seamark.why.look import look_at_all, look_at_pod, look_at_service
from seamark.why.observe import CannotLook
from seamark.why.views import Pod
from seamark.why.world import Seen, World
from virtual_time import HastyClock


class Reading:
    """A cluster of which some may not be read, and nothing may be written or watched."""

    def __init__(self, cluster, *refused, everywhere=()):
        self._cluster = cluster
        self._refused = refused
        self._everywhere = everywhere
        self.listed = collections.Counter()
        self.whole = set()

    async def list(self, resource, *, namespace="", **more):
        self.listed[resource.plural] += 1
        if not namespace:
            self.whole.add(resource.plural)
        if resource in self._refused or (resource in self._everywhere and not namespace):
            raise errors.Forbidden(f'{resource.plural} is forbidden: User "jane" cannot list resource')
        return await self._cluster.list(resource, namespace=namespace, **more)

    async def get(self, resource, name, **more):
        return await self._cluster.get(resource, name, **more)


async def reading(name, *refused, **more):
    case = catalogue_cases.load(catalogue_cases.HERE / f"{name}.yaml")
    return Reading(await build(case), *refused, **more), case.key


@pytest.mark.parametrize("resource", [PODS, SERVICES])
async def test_what_it_cannot_do_without(resource):
    cluster, key = await reading("healthy-plain", resource)
    with pytest.raises(CannotLook, match=f'permission missing: list {resource.plural} in namespace "shop"'):
        await look_at_service(cluster, key, clock=clock())
    with pytest.raises(CannotLook, match="in the whole cluster"):
        await look_at_all(cluster, "", clock=clock())


async def test_without_nodes_nothing_is_said_about_nodes():
    cluster, key = await reading("node-missing", NODES)
    report = await look_at_service(cluster, key, clock=clock())
    assert "permission missing: list nodes" in report.notes
    assert [finding.code.value for finding in report.findings] == ["NodeMissing"]
    assert not report.findings[0].fix.certain


@pytest.mark.parametrize("resource", [NODES, ENDPOINTS, ENDPOINT_SLICES, INGRESSES, NETWORK_POLICIES])
async def test_the_healthy_stay_healthy_with_fewer_permissions(resource):
    cluster, key = await reading("healthy-plain", resource)
    report = await look_at_service(cluster, key, clock=clock())
    assert report.healthy
    assert any(resource.qualified in note for note in report.notes)


async def test_of_other_namespaces_only_if_allowed():
    cluster, key = await reading("pods-in-other-namespace", everywhere=(PODS,))
    report = await look_at_service(cluster, key, clock=clock())
    assert report.cause.code.value == "SelectorMatchesNothing"
    assert "permission missing: list pods in the whole cluster" in report.notes


@pytest.mark.parametrize(
    "name", ["healthy-plain", "selector-value-typo", "pod-crash-loop", "healthy-endpoints-mirrored"]
)
async def test_all_services_in_one_pass_over_the_lists(name):
    cluster, _ = await reading(name)
    await look_at_all(cluster, "", clock=clock())
    assert set(cluster.listed.values()) == {1}


async def test_a_namespace_that_is_not_there_is_named():
    cluster, _ = await reading("healthy-plain")
    assert (await look_at_all(cluster, "shop", clock=clock())).notes == ()
    assert (await look_at_all(cluster, "shpo", clock=clock())).notes == ("there is no namespace shpo",)


async def test_one_service_is_read_within_its_namespace():
    """Whatever else the cluster holds: only nodes and address ranges, which have no namespace, are read as a whole."""
    cluster, key = await reading("healthy-ingress")
    await look_at_service(cluster, key, clock=clock())
    assert cluster.whole == {"nodes", "servicecidrs", "ingressclasses"}
    assert set(cluster.listed.values()) == {1}


async def test_a_difference_must_last_to_count():
    """Controllers take a moment, and lists are not read at one instant."""
    case = catalogue_cases.load(catalogue_cases.HERE / "controller-not-running.yaml")
    cluster = await build(case)

    class Meanwhile(HastyClock):
        async def sleep(self, seconds):
            await super().sleep(seconds)
            await cluster.create(ENDPOINT_SLICES, endpoint_slice, namespace="shop")

    endpoint_slice = {
        "metadata": {
            "name": "web-1",
            "labels": {
                "kubernetes.io/service-name": "web",
                "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
            },
        },
        "addressType": "IPv4",
        "endpoints": [
            {
                "addresses": ["10.1.0.1"],
                "conditions": {"ready": True},
                "targetRef": {"kind": "Pod", "name": "web-1"},
            }
        ],
        "ports": [{"name": "", "port": 8080, "protocol": "TCP"}],
    }

    meanwhile = Meanwhile(NOW)
    report = await look_at_service(cluster, case.key, clock=meanwhile)
    assert report.healthy
    assert len(meanwhile.slept) == 1


async def test_an_unreachable_server():
    class Nobody:
        async def list(self, *_, **__):
            raise errors.ServiceUnavailable("connection refused")

        get = list

    with pytest.raises(CannotLook, match="connection refused"):
        await look_at_service(Nobody(), ("shop", "web"), clock=clock())


# --- Pods ------------------------------------------------------------------------------------------


async def pod_report(name, pod):
    cluster, (namespace, _) = await reading(name)
    return await look_at_pod(cluster, (namespace, pod), clock=clock())


async def test_a_pod_that_gets_traffic():
    report = await pod_report("healthy-neighbours-misspelt", "web-1")
    assert report.healthy
    rows = {row[0]: row for row in report.tables[0].rows}
    assert rows["web"][1:] == ("ready", "gets traffic")
    assert rows["broken"][1] == "not selected"


async def test_a_pod_that_nobody_selects_but_almost():
    report = await pod_report("selector-value-typo", "web-1")
    assert report.cause.code.value == "PodNotSelected"
    assert "web" in report.cause.cause
    assert "wants app=wbe, the Pod has app=web" in report.tables[0].rows[0][2]


async def test_a_pod_that_nobody_selects_and_that_cannot_start():
    """Its own trouble is the cause; that no Service leads to it comes second."""
    image = {"name": "app", "image": "nowhere:1", "ready": False}
    image["state"] = {"waiting": {"reason": "ErrImagePull", "message": "start seamark with --image 'nowhere:1=host'"}}
    made = {
        "metadata": {"name": "lost", "namespace": "shop"},
        "spec": {"nodeName": "n1", "containers": [{"name": "app", "image": "nowhere:1"}]},
        "status": {"phase": "Pending", "containerStatuses": [image]},
    }
    report = explain_pod(World(Seen((), (msgspec.convert(made, Pod),))), ("shop", "lost"))
    assert [each.code.value for each in report.findings] == ["ImagePullFailed", "PodNotSelected"]
    assert "--image 'nowhere:1=host'" in report.cause.fix.text


async def test_a_pod_that_is_not_ready():
    report = await pod_report("pod-crash-loop", "web-1")
    assert report.cause.code.value == "ContainerCrashing"
    assert report.tables[0].rows[0][1] == "not ready"


async def test_a_pod_that_is_not_there():
    report = await pod_report("pod-crash-loop", "web-2")
    assert report.cause.code.value == "PodNotFound"


class Strange(Reading):
    """A cluster with a Pod and a Service that cannot be decoded."""

    async def list(self, resource, **more):
        listing = await super().list(resource, **more)
        if resource not in (PODS, SERVICES):
            return listing
        odd = [
            Unreadable(Identity(name, "shop"), "Expected `int`, got `str` - at `$.spec`") for name in ("odd", "odder")
        ]
        return msgspec.structs.replace(listing, unreadable=odd)


async def test_objects_that_cannot_be_decoded_are_named():
    case = catalogue_cases.load(catalogue_cases.HERE / "healthy-plain.yaml")
    report = await look_at_service(Strange(await build(case)), case.key, clock=clock())
    reason = "Expected `int`, got `str` - at `$.spec`"
    for plural in ("pods", "services"):
        assert f"left out, because it cannot be decoded: {plural} shop/odd and 1 more: {reason}" in report.notes
    assert not report.findings
