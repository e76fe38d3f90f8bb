"""What is logged holds no secret, whatever field it stands in; a log that cannot be written stops nobody."""

from __future__ import annotations

import subprocess
import sys

import pytest

from curtsy.core import observe

KEY = "curtsy_0123456789ab_" + "s" * 43


@pytest.mark.parametrize(
    ("field", "value", "logged"),
    [
        ("webhook_secret", "hunter2", "***"),
        ("error", "postgresql://user:hunter2@db/x is away", "postgresql://user:***@db/x is away"),
        ("error", "redis://:hunter2@db:6379/0 and amqp://a:b@c//", "redis://:***@db:6379/0 and amqp://a:***@c//"),
        ("path", f"/v1/{KEY}?x=1", "/v1/curtsy_0123456789ab_***"),
        ("error", f"Bearer {KEY}, refused", "Bearer curtsy_0123456789ab_*** refused"),
        ("url", "https://a.test:8443/x@y:z", "https://a.test:8443/x@y:z"),
        ("url", "https://a.test/?mail=a:b@c.test", "https://a.test/?mail=a:b@c.test"),
        ("status", 200, 200),
    ],
)
def test_secrets_are_hidden(field: str, value: object, logged: object) -> None:
    assert observe._hide_secrets(None, "", {field: value}) == {field: logged}


def test_a_full_disk_under_the_log_stops_nothing() -> None:
    says = "from curtsy.core.observe import counters, log; log('x', level='error'); print(counters['log_lines_lost'])"
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-c", says], stdout=subprocess.PIPE, stderr=full, text=True, check=False)
    assert done.stdout == "1\n"
