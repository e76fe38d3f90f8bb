"""The floor of one host with one request at a time: a curl handle that fetches a list of URLs on one connection."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from urllib.parse import urlsplit

import pycurl


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("urls", type=Path)
    urls = parser.parse_args().urls.read_text().split()
    chunks: list[bytes] = []
    handle = pycurl.Curl()
    handle.setopt(pycurl.CONNECT_TO, [f"::127.0.0.1:{urlsplit(urls[0]).port}"])
    handle.setopt(pycurl.NOSIGNAL, 1)
    handle.setopt(pycurl.TIMEOUT, 20)
    handle.setopt(pycurl.WRITEFUNCTION, chunks.append)
    pages = 0
    for url in urls:
        handle.setopt(pycurl.URL, url)
        handle.perform()
        pages += handle.getinfo(pycurl.RESPONSE_CODE) == 200 and len(b"".join(chunks)) > 0
        chunks.clear()
    print(json.dumps({"pages": pages}))


if __name__ == "__main__":
    main()
