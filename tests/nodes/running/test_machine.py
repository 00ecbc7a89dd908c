"""The machine: namespaces, sockets and processes of a real kernel, as any user may have them."""

from __future__ import annotations

import asyncio
import os
import signal
import socket

import pytest
from talking import talking

from seamark.linux import calls
from seamark.nodes.running.machine.machine import FABRIC, Machine
from seamark.nodes.running.machine.messages import MACHINE, Start
from seamark.nodes.running.machine.roots import Bind, Folder, Layer, Link, Memory, Processes

SYSTEM = tuple(
    Link(f"/{name}", os.readlink(f"/{name}")) if os.path.islink(f"/{name}") else Bind(f"/{name}", f"/{name}", True)
    for name in ("bin", "lib", "lib64", "usr")
    if os.path.lexists(f"/{name}")
)


async def test_a_process_is_alone_in_its_namespaces(machine):
    os.close(await machine.namespace("web", "web-1"))
    said = await talking(machine, "one", "sh", "-c", "hostname; echo $$; cat /proc/net/dev | wc -l", namespace="web")
    assert (await said.output()).split() == ["web-1", "1", "3"]  # two lines of heading, and lo


async def test_its_exit_code_is_told(machine):
    said = await talking(machine, "one", "sh", "-c", "exit 42")
    assert (await said.process.ended).code == 42


async def test_the_signal_that_ended_it_is_told(machine):
    said = await talking(machine, "one", "sleep", "1000")
    await machine.signal("one", signal.SIGKILL)
    ended = await said.process.ended
    assert (ended.code, ended.signal) == (137, 9)


async def test_all_that_a_process_started_ends_with_it(machine):
    """The output ends only when every process that holds it is gone, also those that went into the background."""
    said = await talking(machine, "one", "sh", "-c", "setsid sleep 1000 & setsid sleep 1000 & echo started; exit 3")
    assert await said.output() == "started\n"


async def test_a_program_that_is_not_there_is_told(machine):
    with pytest.raises(FileNotFoundError):
        await talking(machine, "one", "no-such-program")
    said = await talking(machine, "one", "true")  # the name is free again
    assert (await said.process.ended).code == 0


async def test_a_namespace_that_is_not_there_is_told(machine):
    with pytest.raises(FileNotFoundError, match="nowhere is not there"):
        await machine.open("nowhere", socket.AF_INET, socket.SOCK_STREAM)


async def test_a_socket_belongs_to_its_namespace(machine):
    """The same address and port is free in each namespace, for any process; so is a port of privileged programs."""
    for name in ("one", "two"):
        os.close(await machine.namespace(name))
        (links := await machine.links(name)).up("lo")
        links.close()
    opened = [await machine.open(name, socket.AF_INET, socket.SOCK_STREAM) for name in ("one", "two", FABRIC)]
    for each in opened:
        each.bind(("127.0.0.1", 53))
        each.listen()
    inside = await machine.open("two", socket.AF_INET, socket.SOCK_STREAM)
    loop = asyncio.get_running_loop()
    _, (accepted, _) = await asyncio.gather(loop.sock_connect(inside, ("127.0.0.1", 53)), loop.sock_accept(opened[1]))
    for each in (*opened, inside, accepted):
        each.close()


async def test_a_process_joins_another(machine, tmp_path):
    """As ``kubectl exec`` needs it: the same file system, processes, host name and network."""
    os.close(await machine.namespace("web", "web-1"))
    root = (*SYSTEM, Processes(), Memory("/data"))
    first = await talking(
        machine,
        "first",
        "sh",
        "-c",
        "echo hello > /data/file; exec sleep 1000",
        namespace="web",
        root=root,
        scratch=str(tmp_path),
    )
    script = "until [ -s /data/file ]; do sleep 0.01; done; cat /data/file; hostname; cat /proc/1/comm"
    said = await talking(machine, "second", "sh", "-c", script, inside="first")
    assert (await said.output()).split() == ["hello", "web-1", "sleep"]
    await machine.signal("first", signal.SIGKILL)
    await first.process.ended
    with pytest.raises(FileNotFoundError, match="first is not there"):
        await talking(machine, "third", "true", inside="first")


async def test_a_root_of_its_own(machine, tmp_path):
    """Read-only binds, links, folders and memory; nothing of the machine is left below."""
    (tmp_path / "root").mkdir()
    (tmp_path / "file").write_text("text\n")
    root = (
        *SYSTEM,
        Folder("/etc/deep"),
        Bind(str(tmp_path / "file"), "/etc/deep/file", True),
        Bind(str(tmp_path / "file"), "/etc/open"),
        Link("/here", "/etc/deep"),
        Memory("/tmp", 0o1777, 1 << 20),
        Processes(),
    )
    script = "cat /here/file; echo no > /here/file || echo refused; echo more >> /etc/open; ls -A / | tr '\\n' ' '"
    said = await talking(machine, "one", "sh", "-c", script, root=root, scratch=str(tmp_path / "root"))
    lines = (await said.output()).splitlines()
    assert lines[0] == "text"
    assert "refused" in lines
    assert set(lines[-1].split()) == {each.at.split("/")[1] for each in root}
    assert (tmp_path / "file").read_text() == "text\nmore\n"
    assert not list((tmp_path / "root").iterdir())


async def test_a_layer_leaves_the_original_as_it_is(machine, tmp_path):
    for name in ("lower", "upper", "work", "root"):
        (tmp_path / name).mkdir()
    (tmp_path / "lower/original").write_text("original")
    layer = Layer(*(str(tmp_path / name) for name in ("lower", "upper", "work")))
    root = (layer, *SYSTEM, Processes())
    script = "cat /original; echo changed > /original; echo new > /new"
    said = await talking(machine, "one", "sh", "-c", script, root=root, scratch=str(tmp_path / "root"))
    assert await said.output() == "original"
    assert (tmp_path / "lower/original").read_text() == "original"
    assert (tmp_path / "upper/new").read_text() == "new\n"


async def test_a_large_environment_arrives(machine):
    value = "x" * 100_000
    reading, writing = os.pipe()
    nothing = os.open(os.devnull, os.O_RDONLY)
    start = Start("one", ("sh", "-c", "echo ${#A}"), {"PATH": os.environ["PATH"], "A": value})
    process = await machine.run(start, [nothing, writing, writing])
    os.close(writing)
    os.close(nothing)
    await process.ended
    with open(reading) as file:
        assert file.read() == "100000\n"


async def test_a_terminal(machine):
    ours, theirs = os.openpty()
    start = Start("one", ("sh", "-c", "tty > /dev/null && echo yes"), {"PATH": os.environ["PATH"]}, terminal=True)
    process = await machine.run(start, [theirs])
    os.close(theirs)
    assert (await process.ended).code == 0
    assert os.read(ours, 100) == b"yes\r\n"
    os.close(ours)


async def test_what_a_process_uses_is_told(machine):
    said = await talking(
        machine, "one", "sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo; sleep 1000"
    )
    await asyncio.to_thread(os.read, said.reading, 1)
    spent = (await machine.usage())["one"]
    assert spent.seconds > 0
    assert spent.memory > 100_000
    assert spent.threads >= 1


async def test_everything_ends_with_the_machine(machine):
    said = await talking(machine, "one", "sh", "-c", "trap '' TERM; setsid sleep 1000 & echo; sleep 1000")
    await asyncio.to_thread(os.read, said.reading, 1)
    await machine.close()
    assert await said.output() == ""
    with pytest.raises(OSError, match="has ended"):
        await machine.namespace("late")


async def test_everything_ends_when_the_daemon_is_gone(machine):
    """Its end of the channel closes, whatever it died of."""
    said = await talking(machine, "one", "sleep", "1000")
    machine._channel.socket.shutdown(socket.SHUT_RDWR)
    assert await said.output() == ""
    await machine.gone.wait()


async def test_many_questions_at_once(machine):
    names = [f"ns-{number}" for number in range(50)]
    for opened in await asyncio.gather(*(machine.namespace(name) for name in names)):
        os.close(opened)
    sockets = await asyncio.gather(*(machine.open(name, socket.AF_INET, socket.SOCK_DGRAM) for name in names))
    assert len({os.fstat(each.fileno()).st_ino for each in sockets}) == 50
    for each in sockets:
        each.close()


async def test_a_machine_that_cannot_be_is_one_line(monkeypatch):
    monkeypatch.setattr("sys.executable", "/bin/false")
    with pytest.raises(Exception, match="did not start"):
        await Machine.start()


async def test_processes_share_the_namespace_that_is_held(machine):
    """As ``shareProcessNamespace`` needs it: they see each other, and none of them is the first."""
    await machine.hold("pause")
    first = await talking(machine, "one", "sleep", "1000", beside="pause", root=(*SYSTEM, Processes()), scratch="/mnt")
    said = await talking(
        machine, "two", "sh", "-c", "cat /proc/[0-9]*/comm", beside="pause", root=(*SYSTEM, Processes()), scratch="/mnt"
    )
    found = (await said.output()).split()
    assert found[0] == "pause"
    assert "sleep" in found
    await machine.signal("one", signal.SIGTERM)
    assert (
        await first.process.ended
    ).signal == signal.SIGTERM  # not process 1, so that signals have their usual effect
    await machine.signal("pause", signal.SIGKILL)


async def test_what_a_process_leaves_in_a_shared_namespace_ends_with_it(machine):
    await machine.hold("pause")
    said = await talking(machine, "one", "sh", "-c", "setsid sleep 1000 & echo started; exit 3", beside="pause")
    assert await said.output() == "started\n"  # the output ends when the last who holds it is gone
    stays = await talking(machine, "two", "sleep", "1000", beside="pause")
    assert not stays.process.ended.done()
    await machine.signal("pause", signal.SIGKILL)
    assert (await stays.process.ended).signal == signal.SIGKILL


async def test_a_process_sees_those_of_the_machine(machine):
    said = await talking(machine, "one", "sh", "-c", "readlink /proc/1/ns/pid /proc/self/ns/pid", beside=MACHINE)
    first, own = (await said.output()).split()
    assert first == own


async def test_a_process_that_is_not_there_cannot_be_joined(machine):
    with pytest.raises(FileNotFoundError, match="nobody is not there"):
        await talking(machine, "one", "true", beside="nobody")


async def test_how_many_processes_there_may_be(machine):
    if calls.kernel() < (6, 14):
        pytest.skip("the kernel has one limit for all")
    bomb = "n=0; while sleep 1000 & [ $n -lt 400 ]; do n=$((n+1)); done; echo all"
    said = await talking(machine, "one", "sh", "-c", bomb, processes=350)
    assert "all" not in await said.output()
    assert (await said.process.ended).code != 0


async def test_a_process_is_ended_with_all_it_started(machine):
    """Also if it shares its PID namespace, and what it started does not listen to it."""
    await machine.hold("pause")
    stays = await talking(machine, "other", "sleep", "1000", beside="pause")
    many = "for n in 1 2 3; do setsid sleep 1000 & done; echo started; wait"
    said = await talking(machine, "one", "sh", "-c", many, beside="pause")
    assert os.read(said.reading, 100) == b"started\n"
    await machine.end("one")
    assert (await said.process.ended).signal == signal.SIGKILL
    assert await said.output() == ""  # none of them holds it any more
    assert not stays.process.ended.done()
    await machine.end("nobody")


async def test_a_volume_in_memory_is_shared_and_has_a_size(machine, tmp_path):
    await machine.mount(str(tmp_path), size=1 << 20, group=0, mode=0o777)
    volume = (*SYSTEM, Bind(str(tmp_path), "/data"), Processes(), Memory("/dev"), Bind("/dev/zero", "/dev/zero"))
    write = "echo hello > /data/one; stat -f -c %T /data; stat -c %a /data; head -c 2000000 /dev/zero > /data/two"
    said = await talking(machine, "one", "sh", "-c", write, root=volume, scratch="/mnt")
    words = await said.output()
    assert words.split()[:2] == ["tmpfs", "777"]
    assert "No space left" in words
    said = await talking(machine, "two", "cat", "/data/one", root=volume, scratch="/mnt")
    assert await said.output() == "hello\n"
    assert list(tmp_path.iterdir()) == []  # it is in memory, and not on the machine's disk
    await machine.unmount(str(tmp_path))


async def test_settings_and_shared_memory_of_namespaces(machine):
    os.close(await machine.namespace("node"))
    os.close(await machine.namespace("own", settings={"kernel/shm_rmid_forced": "1", "net/ipv4/tcp_rmem": "1 2 3"}))
    os.close(await machine.namespace("shares", shared_memory_of="node"))
    show = "cat /proc/sys/kernel/shm_rmid_forced; readlink /proc/self/ns/ipc"
    found = {}
    for name in ("node", "own", "shares"):
        said = await talking(machine, name, "sh", "-c", show, namespace=name)
        found[name] = (await said.output()).split()
    assert [found[name][0] for name in found] == ["0", "1", "0"]
    assert found["shares"][1] == found["node"][1] != found["own"][1]
