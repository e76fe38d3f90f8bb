"""No page reads a whole table that grows with a crawl: the plans of all that it asks, on SQLite and PostgreSQL."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import Engine, event, text

from bench.dashboard import Made, fill
from curtsy.control.explain import of_url
from curtsy.core.settings import Settings
from curtsy.core.settings_loading import load
from curtsy.store.engine import Store
from curtsy.web.factory import create_app

#: tables that grow with a crawl
GROWING = ("pages", "urls", "requests", "failures", "records", "reviews", "sources", "citations", "outbox")
#: enough that PostgreSQL prefers an index wherever there is one
PAGES = 20_000
#: what is counted: open dead letters, and at most 100,000 records and decisions; OFFSET ends a window of 20,000 rows
COUNTED = re.compile(
    r"SELECT (\w+(, \w+)*, count\(\*\) AS letters|count\(\*\) FROM \(SELECT 1 AS one) FROM (failures|records|reviews)"
)
HOST = {"Host": "127.0.0.1:8080"}
_NAMED = re.compile(
    rf"\b(?:FROM|JOIN) ({'|'.join(GROWING)})\b(?: (?:AS )?(?!WHERE|ORDER|GROUP|LIMIT|ON|JOIN)([a-z]\w*))?"
)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, Made]]:
    folder: Path = tmp_path_factory.mktemp("filled")
    if request.param == "sqlite":
        with Store.open(f"sqlite:///{folder / 'c.sqlite'}") as store:
            yield store, _fill(store)
        return
    server = request.getfixturevalue("postgres")
    with Store.open(server.create_database("cost")) as store:
        yield store, _fill(store)


def _fill(store: Store) -> Made:
    made = fill(store, PAGES)
    with store.begin() as tx:
        for table, columns, values in (
            (
                "urls",
                "seq, crawl, fp, host, url, kind, depth, added_ms, fence, state",
                "n, crawl, fp, host, url, 'p', depth, 1, fence, CASE WHEN n % 3 = 0 THEN 'open' ELSE 'done' END",
            ),
            (
                "records",
                "crawl, kind, subject, schema_hash, schema, url, data, scores, low_confidence, created_ms, status",
                "crawl, 'site', 'site:' || n, 'h', 's', url, '{}', '{}', false, 1, "
                "CASE WHEN n % 100 = 0 THEN 'held' ELSE 'published' END",
            ),
            ("sources", "crawl, page, sha256, kind, url, text", "crawl, 'p' || n, 'h', 'text', url, 'A text.'"),
            ("citations", "record, page, crawl", "n, 'p' || n, crawl"),
            ("reviews", 'record, crawl, decision, who, at_ms, "before"', "n, crawl, 'approve', 'ada', 1, '{}'"),
        ):
            tx.execute(text(f"INSERT INTO {table} ({columns}) SELECT {values} FROM pages"))
    if store.dialect == "postgresql":
        store.run(lambda tx: tx.exec_driver_sql("ANALYZE"))
    return made


@contextmanager
def listening() -> Iterator[list[tuple[str, Any]]]:
    """What this thread asks of any database meanwhile."""
    heard: list[tuple[str, Any]] = []
    here = threading.get_ident()  # others fill the frontier

    def hear(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if threading.get_ident() == here:
            heard.append((statement, parameters))

    event.listen(Engine, "before_cursor_execute", hear)
    try:
        yield heard
    finally:
        event.remove(Engine, "before_cursor_execute", hear)


def read_whole(store: Store, heard: list[tuple[str, Any]]) -> list[str]:
    """The statements that read all of a growing table, with their plans."""
    found = []
    with store.read() as tx:
        postgresql = tx.dialect.name == "postgresql"
        for statement, parameters in heard:
            if not re.match(r"\s*(SELECT|WITH)\b", statement) or COUNTED.match(statement) or "OFFSET" in statement:
                continue
            rows = tx.exec_driver_sql(f"EXPLAIN {'' if postgresql else 'QUERY PLAN '}{statement}", parameters)
            plan = [row[0] if postgresql else row[3] for row in rows]
            if _whole(statement, plan, postgresql):
                found.append("\n".join((statement, *plan)))
    return found


def _whole(statement: str, plan: list[str], postgresql: bool) -> bool:
    if postgresql:
        # What a clock far off has written is in the default partition.
        return any(re.search(rf"Seq Scan on ({'|'.join(GROWING)})(?!_default)", line) for line in plan)
    names = {alias or table for table, alias in _NAMED.findall(statement)}
    made = {line.split()[1] for line in plan if line.startswith(("CO-ROUTINE", "MATERIALIZE"))}
    return any(line.startswith("SCAN") and line.split()[1] in names - made for line in plan)


def test_explaining_a_url_reads_no_log_from_end_to_end(filled: tuple[Store, Made]) -> None:
    store, made = filled
    url = f"https://host-00042.test/articles/{made.crawl.n}/42.html"
    with listening() as heard, store.read() as tx:
        facts = of_url(tx, url, Settings(), None)
    assert [request.url for request in facts.requests] == [url]
    assert sum("FROM requests" in statement for statement, _ in heard) >= 2
    assert read_whole(store, heard) == []
    # It would be seen.
    asked = "SELECT url FROM requests WHERE host = 'host-00042.test' ORDER BY start_ms DESC LIMIT 20"
    assert len(read_whole(store, [(asked, ())])) == 1


@pytest.fixture
def client(filled: tuple[Store, Made], tmp_path: Path) -> Iterator[FlaskClient]:
    url = filled[0]._engine.url.render_as_string(hide_password=False)
    app = create_app(load(data_dir=tmp_path / "data", store_url=url))
    yield app.test_client()
    app.extensions["curtsy"].close()


def test_no_page_reads_a_growing_table_from_end_to_end(filled: tuple[Store, Made], client: FlaskClient) -> None:
    store, made = filled
    crawl = f"/crawls/{made.crawl.id}"
    paths = [
        "/", "/crawls", crawl, f"{crawl}/hosts", f"{crawl}/pages", f"{crawl}/records",
        f"{crawl}/records?status=held", f"{crawl}/failures", "/hosts", "/hosts?notable=1", "/hosts/host-00042.test",
        "/failures", "/failures?host=host-00040.test", "/review", "/review/100", "/schedules", "/workers", "/keys",
        "/explain?url=host-00042.test", f"/explain?url=https://host-00042.test/articles/{made.crawl.n}/42.html",
        "/explain?url=https://host-00042.test/robots.txt",
    ]  # fmt: skip
    found: list[str] = []
    for path in paths:
        with listening() as heard:
            answer = client.get(path, headers=HOST)
        assert answer.status_code == 200, f"{path}: {answer.text}"
        found += [f"{path}: {one}" for one in read_whole(store, heard)]
    assert "\n\n".join(found) == ""
