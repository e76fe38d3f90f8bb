"""An object store over real HTTP: moto's server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer


@contextmanager
def object_store() -> Iterator[str]:
    """Its address."""
    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    try:
        host, port = moto.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        moto.stop()


def use(address: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Everything in this process, and what it starts, asks that store; a client of it, to be closed."""
    given = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
    for name, value in {**given, "AWS_ENDPOINT": address, "AWS_ALLOW_HTTP": "true"}.items():
        monkeypatch.setenv(name, value)
    return boto3.client(
        "s3", endpoint_url=address, region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test"
    )
