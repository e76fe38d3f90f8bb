"""A small real DNS server over UDP: answers what its zone says."""

from __future__ import annotations

import asyncio
import ipaddress
import struct
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

A, CNAME, AAAA = 1, 5, 28
_NOERROR, _SERVFAIL, _NXDOMAIN = 0, 2, 3

#: name -> records (type, data, ttl), or `servfail`, or `silent`; a name that is not there does not exist
Zone = dict[str, list[tuple[int, str, int]] | str]


class DnsServer(asyncio.DatagramProtocol):
    def __init__(self, zone: Zone):
        self.zone = zone
        self.asked: Counter[str] = Counter()
        #: while set, answers are held back
        self.held: list[tuple[bytes, tuple[str, int]]] | None = None
        self.waited_for = 0
        self.enough = asyncio.Event()
        self.address = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.DatagramTransport, transport)
        self.address = f"127.0.0.1:{transport.get_extra_info('sockname')[1]}"

    def datagram_received(self, data: bytes, sender: tuple[str, int]) -> None:
        if self.held is not None:
            self.held.append((data, sender))
            if len(self.held_names()) >= self.waited_for:
                self.enough.set()
        else:
            self.answer(data, sender)

    def answer(self, data: bytes, sender: tuple[str, int]) -> None:
        name, kind, question = _question(data)
        self.asked[name] += 1
        records = self.zone.get(name)
        if records == "silent":
            return
        code = _SERVFAIL if records == "servfail" else _NOERROR if records is not None else _NXDOMAIN
        found = self._chain(name, kind) if isinstance(records, list) else []
        head = data[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, len(found), 0, 0)
        self.transport.sendto(head + question + b"".join(found), sender)

    def _chain(self, name: str, kind: int) -> list[bytes]:
        found = []
        records = self.zone.get(name, [])
        for record_kind, data, ttl in records if isinstance(records, list) else []:
            if record_kind == CNAME:
                found += [_record(name, CNAME, _name(data), ttl), *self._chain(data, kind)]
            elif record_kind == kind:
                found.append(_record(name, kind, ipaddress.ip_address(data).packed, ttl))
        return found

    def hold(self, names: int) -> None:
        """Answer nothing for now; `enough` is set when that many names were asked for."""
        self.held = []
        self.waited_for = names

    def held_names(self) -> set[str]:
        return {_question(data)[0] for data, _ in self.held or ()}

    def release(self) -> None:
        held, self.held = self.held or [], None
        for data, sender in held:
            self.answer(data, sender)


def _question(data: bytes) -> tuple[str, int, bytes]:
    labels, at = [], 12
    while data[at]:
        labels.append(data[at + 1 : at + 1 + data[at]].decode())
        at += 1 + data[at]
    kind = struct.unpack(">H", data[at + 1 : at + 3])[0]
    return ".".join(labels).lower(), kind, data[12 : at + 5]


def _name(name: str) -> bytes:
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def _record(name: str, kind: int, data: bytes, ttl: int) -> bytes:
    return _name(name) + struct.pack(">HHIH", kind, 1, ttl, len(data)) + data


@asynccontextmanager
async def dns_serving(zone: Zone) -> AsyncIterator[DnsServer]:
    loop = asyncio.get_running_loop()
    transport, server = await loop.create_datagram_endpoint(lambda: DnsServer(zone), local_addr=("127.0.0.1", 0))
    try:
        yield server
    finally:
        transport.close()
