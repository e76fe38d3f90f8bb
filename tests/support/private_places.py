"""Places that a crawler must not reach: a listener that counts, and every way to write its address."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from dns_server import DnsServer, Zone, dns_serving

#: how 127.0.0.1 and other private places are written
FORMS = {
    "dotted": "127.0.0.1",
    "decimal": "2130706433",
    "octal": "0177.0.0.1",
    "octal, all of it": "017700000001",
    "hexadecimal": "0x7f000001",
    "hexadecimal, dotted": "0x7f.0x0.0x0.0x1",
    "short": "127.1",
    "shorter": "0",
    "with a dot at its end": "127.0.0.1.",
    "escaped": "%31%32%37.0.0.1",
    "full-width digits": "%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1",
    "another of the loopback": "127.8.9.10",
    "this network": "0.0.0.0",
    "private": "10.0.0.1",
    "private, too": "172.16.0.1",
    "of a home": "192.168.0.1",
    "carrier's": "100.64.0.1",
    "link-local, of clouds": "169.254.169.254",
    "link-local, decimal": "2852039166",
    "multicast": "224.0.0.1",
    "broadcast": "255.255.255.255",
    "IPv6 loopback": "[::1]",
    "IPv6 loopback, in full": "[0:0:0:0:0:0:0:1]",
    "IPv6 unspecified": "[::]",
    "IPv6-mapped": "[::ffff:127.0.0.1]",
    "IPv6-mapped, hexadecimal": "[::ffff:7f00:1]",
    "IPv4-compatible": "[::127.0.0.1]",
    "IPv4-translated": "[::ffff:0:127.0.0.1]",
    "NAT64": "[64:ff9b::127.0.0.1]",
    "NAT64 of a cloud": "[64:ff9b::a9fe:a9fe]",
    "NAT64, local": "[64:ff9b:1::127.0.0.1]",
    "6to4": "[2002:7f00:1::]",
    "Teredo": "[2001:0:7f00:1::80ff:fffe]",
    "unique-local": "[fd00::1]",
    "unique-local, of clouds": "[fd00:ec2::254]",
    "IPv6 link-local": "[fe80::1]",
    "site-local": "[fec0::1]",
    "IPv6 multicast": "[ff02::1]",
    "documentation": "[2001:db8::1]",
}


class Listener:
    """On loopback, IPv4 and IPv6: whoever connects is counted."""

    def __init__(self, port: int) -> None:
        self.connections = 0
        self._sockets = [socket.create_server(("127.0.0.1", port))]
        with suppress(OSError):  # not every machine speaks IPv6
            self._sockets.append(socket.create_server(("::1", port), family=socket.AF_INET6))
        self._threads = [threading.Thread(target=self._count, args=(one,), daemon=True) for one in self._sockets]
        for thread in self._threads:
            thread.start()

    def _count(self, listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                self.connections += 1
                connection.close()

    def close(self) -> None:
        for one in self._sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)  # wakes the thread
            one.close()
        for thread in self._threads:
            thread.join()


@contextmanager
def listening(port: int) -> Iterator[Listener]:
    listener = Listener(port)
    try:
        yield listener
    finally:
        listener.close()


@contextmanager
def naming(zone: Zone) -> Iterator[DnsServer]:
    """A DNS server beside this thread; its zone may be changed at any time."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    serving = dns_serving(zone)
    server = asyncio.run_coroutine_threadsafe(serving.__aenter__(), loop).result(10)
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(serving.__aexit__(None, None, None), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
