"""``seamark port-forward`` against a cluster whose Pods can be reached, over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket

import pytest
from forwarded_cluster import KUBECONFIG, ask, forwarded_cluster

from seamark import errors
from seamark.cli import main
from seamark.cli.failure import Failure
from seamark.cli.reaching import port_forward
from seamark.forwarding.ports import parse_ports
from seamark.kinds.resource import CONFIGMAPS, DEPLOYMENTS, PODS
from turns import until

HTTP = [{"name": "http", "port": 80, "targetPort": "port-8080"}]
TO_8080 = [{"name": "http", "port": 8080, "protocol": "TCP"}]


@contextlib.asynccontextmanager
async def forwarding(world, capsys, *words):
    """The command at work: the local ports it announced, and a function that returns all it has told so far."""
    options = port_forward.parser().parse_args(list(words))
    ended = asyncio.Event()
    work = asyncio.ensure_future(port_forward._forward(options, parse_ports(options.ports), world.connection, ended))
    said = {"out": "", "err": ""}

    def told():
        read = capsys.readouterr()
        said["out"] += read.out
        said["err"] += read.err
        return said["err"]

    def announced():
        told()
        return re.findall(r"Forwarding from 127\.0\.0\.1:(\d+) -> (\w+)", said["out"])

    try:
        await until(lambda: work.done() or len(announced()) == len(options.ports))
        if work.done():
            work.result()
        yield [int(port) for port, _ in announced()], told
        ended.set()
        await work
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


async def test_a_service_follows_its_endpoints_and_says_when_it_does(capsys):
    async with forwarded_cluster() as world:
        await world.pod("web-1")
        await world.pod("web-2")
        await world.service("web", HTTP)
        await world.endpoints("web", {"10.1.0.1": "web-1", "10.1.0.2": "web-2"}, TO_8080)
        async with forwarding(world, capsys, "svc/web", ":80", ":http") as ((first, second), told):
            assert [await ask("127.0.0.1", first) for _ in range(3)] == [b"web-1:hello"] * 3
            assert await ask("::1", second) == b"web-1:hello"
            assert len(world.front.tunnels) == 1, "the tunnel of the first look serves all of them"
            await world.remove_pod("web-1")
            await world.endpoints("web", {"10.1.0.2": "web-2"}, TO_8080)
            assert await ask("127.0.0.1", first) == b"web-2:hello"
            await until(lambda: "connections go to Pod web-2 now" in told())
            assert "Service web: Pod web-1 is gone" in told()


async def test_a_service_without_a_selector_is_reached_directly(capsys):
    async with forwarded_cluster() as world:
        address, port = await world.program("outside", own_address())
        await world.service("legacy", [{"port": 80}])
        await world.endpoints("legacy", {address: None}, [{"port": port, "protocol": "TCP"}])
        async with forwarding(world, capsys, "svc/legacy", ":80") as ((local,), told):
            assert await ask("127.0.0.1", local) == b"outside:hello"
            closed = socket.socket()
            closed.bind((own_address(), 0))
            await world.endpoints("legacy", {address: None}, [{"port": closed.getsockname()[1], "protocol": "TCP"}])
            while await ask("127.0.0.1", local):
                pass
            assert "cannot be reached from this machine" in told()
            closed.close()


def own_address():
    """An address of this machine that an EndpointSlice may have, which a loopback address is not."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing: it only chooses the way out
        except OSError:
            pytest.skip("this machine has no address but loopback")
        return probe.getsockname()[0]


async def test_an_address_that_other_machines_can_reach_is_told(capsys):
    async with forwarded_cluster() as world:
        await world.pod("web-1")
        words = ("pod/web-1", ":8080", "--address", f"127.0.0.1,{own_address()}")
        async with forwarding(world, capsys, *words) as ((local,), told):
            assert await ask(own_address(), local) == b"web-1:hello"
            assert f"port {local} of {own_address()}: other machines can connect to it" in told()
            assert "127.0.0.1" not in told()


async def test_pods_and_workloads_are_targets_too(capsys):
    async with forwarded_cluster() as world:
        await world.pod("web-1", {"app": "web"})
        await world.cluster.create(
            DEPLOYMENTS,
            {
                "metadata": {"name": "web"},
                "spec": {
                    "selector": {"matchLabels": {"app": "web"}},
                    "template": {
                        "metadata": {"labels": {"app": "web"}},
                        "spec": {"containers": [{"name": "c", "image": "i"}]},
                    },
                },
            },
            namespace="default",
        )
        for target, port in (("pod/web-1", ":8080"), ("web-1", ":port-8080"), ("deploy/web", ":port-8080")):
            async with forwarding(world, capsys, target, port) as ((local,), _):
                assert await ask("127.0.0.1", local) == b"web-1:hello"


async def test_a_service_without_endpoints_is_told_and_works_once_it_has_some(capsys):
    async with forwarded_cluster() as world:
        await world.service("web", HTTP)
        async with forwarding(world, capsys, "svc/web", ":80") as ((local,), told):
            assert "no ready endpoints yet" in told()
            assert "seamark why svc/web" in told()
            assert await ask("127.0.0.1", local) == b""
            await world.pod("web-1")
            await world.endpoints("web", {"10.1.0.1": "web-1"}, TO_8080)
            while await ask("127.0.0.1", local) != b"web-1:hello":
                pass


async def test_what_the_node_says_went_wrong_is_told(capsys):
    async with forwarded_cluster() as world:
        await world.pod("web-1")
        async with forwarding(world, capsys, "pod/web-1", ":81") as ((local,), told):
            assert await ask("127.0.0.1", local) == b""
            await until(lambda: "dial tcp4 127.0.0.1:81: connect: connection refused" in told())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("svc/web", "53"), "port 53 of Service web is UDP: Kubernetes forwards only TCP"),
        (("svc/web", "81"), r"no port 81; its ports: 80 \(http\), 53/UDP \(dns\)"),
        (("svc/alias", "80"), "only another name for example.com"),
        (("pod/web-1", "nosuch"), "Pod web-1 declares no TCP port nosuch"),
        (("configmap/kube-root-ca.crt", "80"), "selects no Pods"),
        (("nosuch/web", "80"), "doesn't have a resource type"),
        (("pod/web-1", "8080", "--address", "192.0.2.99"), "cannot listen on port 8080 of 192.0.2.99"),
    ],
)
async def test_what_cannot_be_forwarded_is_said_in_one_line(capsys, words, sentence):
    async with forwarded_cluster() as world:
        await world.pod("web-1")
        await world.service("web", [*HTTP, {"name": "dns", "port": 53, "protocol": "UDP"}])
        await world.cluster.create(CONFIGMAPS, {"metadata": {"name": "kube-root-ca.crt"}}, namespace="default")
        await world.service("alias", [], type="ExternalName", externalName="example.com")
        with pytest.raises(Failure, match=sentence):
            async with forwarding(world, capsys, *words):
                pass


async def test_a_cluster_that_cannot_forward_is_said_at_once(capsys):
    async with forwarded_cluster(refusal=501) as world:
        await world.pod("web-1")
        with pytest.raises(
            Failure, match="does not forward ports of Pods: Seamark's simulated nodes run no containers"
        ):
            async with forwarding(world, capsys, "pod/web-1", "8080"):
                pass


async def test_a_target_that_does_not_exist_is_the_servers_answer(capsys):
    async with forwarded_cluster() as world:
        with pytest.raises(errors.NotFound, match='pods "web-1" not found'):
            async with forwarding(world, capsys, "web-1", "8080"):
                pass
        assert (await world.cluster.list(PODS)).items == []


def test_mistakes_of_the_command_line_end_with_2(capsys, tmp_path):
    assert main(["port-forward", "svc/web", "80:x:y"]) == 2
    assert "'80:x:y' is no port to forward" in capsys.readouterr().err
    nowhere = tmp_path / "kubeconfig"
    nowhere.write_text(KUBECONFIG.format(url="http://127.0.0.1:1"))
    assert main(["port-forward", "svc/web", "80", "--kubeconfig", str(nowhere)]) == 1
    assert "cannot reach http://127.0.0.1:1" in capsys.readouterr().err


async def test_the_half_of_localhost_that_another_program_has_is_told(capsys):
    async with forwarded_cluster() as world:
        await world.pod("web-1")
        await world.service("web", HTTP)
        await world.endpoints("web", {"10.1.0.1": "web-1"}, TO_8080)
        with socket.create_server(("::1", 0), family=socket.AF_INET6) as taken:
            port = taken.getsockname()[1]
            async with forwarding(world, capsys, "svc/web", f"{port}:80") as (ports, told):
                assert ports == [port]
                assert f"seamark: port {port} of ::1 is used by another program" in told()
