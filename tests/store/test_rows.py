"""Statements over many rows."""

from __future__ import annotations

from pathlib import Path

from curtsy.core.model import Request
from curtsy.store import requests
from curtsy.store.engine import Store


def test_sqlite_inserts_many_rows_with_few_statements(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path / 'curtsy.sqlite'}")
    rows = [
        Request(fence=n, crawl=1, host="a.test", url="http://a.test/", start_ms=n, end_ms=n, kind="p", status=200)
        for n in range(1, 201)
    ]
    run: list[str] = []
    with store.begin() as tx:
        raw = tx.connection.dbapi_connection
        assert raw is not None
        raw.set_trace_callback(run.append)
        requests.insert(tx, rows)
        raw.set_trace_callback(None)
    assert len(run) == 5  # 3 x 64 + 2 x 4: each row of its own would hand the interpreter over and back
    with store.read() as tx:
        assert len(requests.under(tx, range(1, 201))) == 200
    store.close()
