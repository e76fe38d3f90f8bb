"""One request over a connection of its own, for servers whose responses libcurl refuses.

The same rules hold as for a transfer of libcurl: a checked address, the guard right before bytes leave, one request,
the time limit of the slot.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from typing import NamedTuple

from curtsy.core.outcome import Fault
from curtsy.fetch.raw_response import BadResponse
from curtsy.fetch.transfer import Transfer

_READ_BYTES = 65_536


class Problem(NamedTuple):
    """Why there is no response."""

    fault: Fault
    detail: str


class RawConnections:
    """Makes connections with the same certificates and limits as libcurl's."""

    def __init__(self, ca_file: str, connect_timeout_s: float) -> None:
        self._ca_file = ca_file
        self._connect_timeout_s = connect_timeout_s
        self._tls: ssl.SSLContext | None = None

    async def exchange(self, transfer: Transfer, address: str, port: int, total_s: float) -> Problem | None:
        """Send the request and read the response into the transfer; None: all of it arrived, or the transfer has
        its own fault.
        """
        try:
            async with asyncio.timeout(total_s):
                return await self._exchange(transfer, address, port)
        except TimeoutError:
            return Problem(Fault.TIMEOUT if transfer.started is not None else Fault.CONNECT, "it took too long")
        except (ssl.SSLError, ssl.CertificateError) as error:
            return Problem(Fault.TLS, str(error))
        except (OSError, EOFError) as error:
            return Problem(Fault.RESET if transfer.started is not None else Fault.CONNECT, str(error))
        except (BadResponse, ValueError) as error:
            return Problem(Fault.PROTOCOL, str(error))

    async def _exchange(self, transfer: Transfer, address: str, port: int) -> Problem | None:
        target = transfer.target
        secure = target.scheme == "https"
        async with asyncio.timeout(self._connect_timeout_s):
            reader, writer = await asyncio.open_connection(
                address, port, ssl=self._context() if secure else None,
                server_hostname=target.host if secure else None,
            )  # fmt: skip
        try:
            if not transfer.may_send(address):
                return None
            writer.write(transfer.raw_request())
            response = transfer.raw_response()
            while data := await reader.read(_READ_BYTES):
                if not response.feed(data):
                    return None
            response.end()
            return None
        finally:
            writer.close()
            with suppress(OSError, ssl.SSLError):
                writer.transport.abort()

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context(cafile=self._ca_file)
            self._tls.minimum_version = ssl.TLSVersion.TLSv1_2
            self._tls.set_alpn_protocols(["http/1.1"])
        return self._tls
