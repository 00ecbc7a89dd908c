"""Packets through the engine's rules for which no recording exists."""

import asyncio
import socket
import struct
import subprocess

from namespaces import alone
from route_worlds import endpoint, service, slice, table

from seamark.proxy.engine import Update
from seamark.proxy.nftables.engine import NftablesEngine

_POLYNOMIAL = 0x82F63B78  # of CRC-32C, reflected


def checksum(packet):
    found = 0xFFFFFFFF
    for byte in packet:
        found ^= byte
        for _ in range(8):
            found = found >> 1 ^ (_POLYNOMIAL if found & 1 else 0)
    return found ^ 0xFFFFFFFF


def first_packet(source, to):
    """What opens an SCTP association: a header and the chunk INIT."""
    packet = struct.pack(">HHII", source, to, 0, 0) + struct.pack(">BBHIIHHI", 1, 0, 20, 1, 65535, 1, 1, 1)
    return packet[:8] + struct.pack("<I", checksum(packet)) + packet[12:]


@alone
async def test_sctp_is_led_to_an_endpoint():
    """Raw packets, because not every kernel has SCTP sockets; its connection tracking knows SCTP all the same."""
    for command in ("link set lo up", "addr add 10.244.1.1/32 dev lo", "route add 10.96.0.0/16 dev lo"):
        subprocess.run(["ip", *command.split()], check=True)
    ports = [{"port": 80, "protocol": "SCTP"}]
    listed = [{"name": "", "port": 9999, "protocol": "SCTP"}]
    of = table(service(ip="10.96.0.1", ports=ports), slice("four", endpoint("10.244.1.1"), ports=listed))
    engine = NftablesEngine()
    await engine.start()
    await engine.apply(Update({key: of.routes(key) for key in of}, of.surroundings, everything=True))
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_SCTP) as raw:
            raw.setblocking(False)
            raw.sendto(first_packet(40000, 80), ("10.96.0.1", 0))
            packet = await asyncio.get_running_loop().sock_recv(raw, 2000)
    finally:
        await engine.close()
    header = (packet[0] & 15) * 4
    assert socket.inet_ntoa(packet[16:20]) == "10.244.1.1"
    assert packet[header + 2 : header + 4] == (9999).to_bytes(2)
