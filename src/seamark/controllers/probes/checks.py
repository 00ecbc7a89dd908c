"""Carries out one health check, as the kubelet does for Pods: HTTP, TCP, gRPC or a command.

An answer from 200 to 399 is a success of an HTTP probe; redirects are not followed, and certificates are not checked,
because a probe asks whether a server answers, not who it is.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress

from seamark.access import grpc_health
from seamark.access.pod_streams import unverified
from seamark.rules.probing import Probe, Result, Target

AGENT = "seamark-probe"
LONGEST_WORDS = 200  # characters of an answer that are repeated in an Event


def impossible(probe: Probe, *, commands: bool) -> str:
    """Why such a probe cannot be carried out here at all; "" if it can."""
    if probe.scheme == "exec" and not commands:
        return "exec probes are switched off; `--probe-commands`, or `commands` in `[discovery.probes]`, allows them"
    return ""


async def check(probe: Probe, target: Target) -> Result:
    """Check a target once; never raises for what the target does."""
    what = _shown(probe, target)
    try:
        async with asyncio.timeout(probe.timeout):
            match probe.scheme:
                case "tcp":
                    return await _tcp(target, what)
                case "grpc":
                    return await _grpc(probe, target, what)
                case "exec":
                    return await _exec(probe, target, what)
                case _:
                    return await _http(probe, target, what)
    except TimeoutError:
        return Result(False, f"{what}: no answer within {probe.timeout:g} s")
    except (OSError, ValueError) as error:
        return Result(False, f"{what}: {_reason(error)}")


def _reason(error: OSError | ValueError) -> str:
    """The system's words, or those of TLS, without the address that the event loop adds to them."""
    said: str | None = getattr(error, "reason", None)
    if said is None and isinstance(error, OSError) and error.errno and error.errno > 0:
        said = os.strerror(error.errno)
    return said or str(error) or type(error).__name__


def _shown(probe: Probe, target: Target) -> str:
    match probe.scheme:
        case "tcp":
            return f"connecting to {target}"
        case "grpc":
            return f"gRPC health of {probe.path.removeprefix('/') or 'the server'} at {target}"
        case "exec":
            return " ".join(probe.command)[:LONGEST_WORDS]
        case _:
            return f"GET {probe.scheme}://{target}{probe.path or '/'}"


async def _tcp(target: Target, what: str) -> Result:
    _, writer = await asyncio.open_connection(target.address, target.port)
    writer.close()
    return Result(True, f"{what}: connected")


async def _http(probe: Probe, target: Target, what: str) -> Result:
    tls = unverified() if probe.scheme == "https" else None
    name = probe.host.strip("[]") or target.address
    reader, writer = await asyncio.open_connection(
        target.address, target.port, ssl=tls, server_hostname=name if tls else None
    )
    try:
        host = probe.host or str(target)
        head = f"GET {probe.path or '/'} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {AGENT}\r\nAccept: */*\r\n"
        writer.write(f"{head}Connection: close\r\n\r\n".encode())
        line = (await reader.readline()).decode("latin-1").strip()
    finally:
        writer.close()
    version, _, answer = line.partition(" ")
    if not version.startswith("HTTP/") or not answer[:3].isdigit():
        return Result(False, f"{what}: {line[:LONGEST_WORDS]!r} is no HTTP answer" if line else f"{what}: no answer")
    return Result(200 <= int(answer[:3]) < 400, f"{what}: {answer[:LONGEST_WORDS]}")


async def _grpc(probe: Probe, target: Target, what: str) -> Result:
    reader, writer = await asyncio.open_connection(target.address, target.port)
    try:
        service = probe.path.removeprefix("/")
        state = await grpc_health.ask(reader, writer, authority=probe.host or str(target), service=service)
    except grpc_health.NoAnswer as error:
        return Result(False, f"{what}: {error}")
    finally:
        writer.close()
    return Result(state == grpc_health.SERVING, f"{what}: {state}")


async def _exec(probe: Probe, target: Target, what: str) -> Result:
    """Run the command without a shell; it finds the member in ``$ADDRESS`` and ``$PORT``, also within its words."""
    about = {"ADDRESS": target.address, "PORT": str(target.port or "")}
    words = [word.replace("$ADDRESS", about["ADDRESS"]).replace("$PORT", about["PORT"]) for word in probe.command]
    process = await asyncio.create_subprocess_exec(
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=os.environ | about,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        told = b""
        while chunk := await process.stdout.read(4096):
            told = (told + chunk)[:LONGEST_WORDS]
        code = await process.wait()
    except asyncio.CancelledError:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        raise
    words_said = " ".join(told.decode(errors="replace").split())
    return Result(code == 0, f"{what}: exit code {code}{f': {words_said}' if words_said else ''}")
