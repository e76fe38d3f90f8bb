"""A host that is far away: `python -m bench.distant PORT FOLDER MS` answers each request after that time."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.nginx import wait_until_open
from bench.site import Site


@contextmanager
def serving(site: Site, ms: int) -> Iterator[None]:
    """The first host of a site, until the block ends."""
    root = site.folder / site.host(0)
    process = subprocess.Popen([sys.executable, "-m", "bench.distant", str(site.port), str(root), str(ms)])
    try:
        wait_until_open(process, site.port)
        yield
    finally:
        process.terminate()
        process.wait(timeout=20)


async def _serve(port: int, root: Path, seconds: float) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split(b" ", 2)[1].decode().lstrip("/") or "index.html"
                file = root / path
                body = file.read_bytes() if file.is_file() else None
                kind = "text/plain" if path.endswith(".txt") else "text/html"
                await asyncio.sleep(seconds)
                status = "404 Not Found" if body is None else "200 OK"
                writer.write(f"HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\n".encode())
                writer.write(f"Content-Length: {len(body or b'')}\r\n\r\n".encode() + (body or b""))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", port, backlog=256) as server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]) / 1000))
