"""All stages of many pages or sites in one pass, for a process that makes the records of a crawl without a model.

One transaction begins some rows of the outbox, one stores all their records. The guarantees of single stages hold here,
too: the transaction that deletes a row writes its record, and a row that another process has completed is skipped. Only
rows that were never begun are taken, and a pass does not count as an attempt: after a kill, its rows are begun one by
one. So a page that kills its process becomes a dead letter alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from curtsy.core.errors import Unavailable, UsageError
from curtsy.core.failpoints import point
from curtsy.core.model import Crawl
from curtsy.core.observe import count
from curtsy.grounding import scoring
from curtsy.grounding.page_schema import extractors, page_facts
from curtsy.records import extraction
from curtsy.records import plan as plans
from curtsy.records.extraction import Parts
from curtsy.records.plan import Plan
from curtsy.store import crawls, outbox
from curtsy.store.outbox import Row

#: rows of one pass, and seconds after which it takes no further row: less than a lease
MOST_ROWS = 100
_MOST_S = 1.0


class Made(NamedTuple):
    """The results of the stages of one row."""

    row: Row
    found: dict[str, Any]


class Pass(NamedTuple):
    """What a pass did: how many rows it began, and those that failed."""

    begun: int
    failed: list[tuple[Row, Exception]]


#: stores the records of a row within a transaction: (tx, crawl, schema_hash, row, found, now_ms)
Keep = Callable[[Any, Crawl, str, Row, dict[str, Any], int], None]


def suits(parts: Parts, crawl: Crawl) -> bool:
    """Return whether a crawl's records can be made in bulk: by its rules alone, without functions of a user."""
    if crawl.schema is None or (crawl.llm or parts.settings.llm_kind) != "none":
        return False
    try:
        plan = plans.of(parts.store, crawl)
    except UsageError:
        # A function that this process does not have: each stage that needs it reports that.
        return False
    return plan is not None and not _has_functions(plan)


def _has_functions(plan: Plan) -> bool:
    """A function of a user has no time limit."""
    by_user = plan.function is not None and extractors.get(plan.function) is not page_facts
    return by_user or isinstance(plan.rubric, scoring.Function)


def run_some(parts: Parts, crawl_n: int, now_ms: int, lease_ms: int, keep: Keep) -> Pass:
    """Begin some rows that are due, and store their records. Begins none if none is due, or the crawl is paused."""
    rows = parts.store.run(outbox.begin_some, crawl_n, now_ms, lease_ms, MOST_ROWS)
    if not rows:
        return Pass(0, [])
    point("stage.begin")
    with parts.store.read() as tx:
        crawl = crawls.by_n(tx, crawl_n)
    schema_hash = crawl.schema_hash or extraction.plan_of(parts, crawl).schema.hash
    made, failed = _made(parts, crawl, rows)
    began = time.thread_time()
    parts.store.run(_finish, crawl, schema_hash, rows, made, failed, now_ms, keep)
    count("stage_store_cpu_us", int((time.thread_time() - began) * 1_000_000))
    point("stage.stored")
    for stage in ("extract", "score", "store"):
        count(f"stage_{stage}", len(made))
    return Pass(len(rows), failed)


def _made(parts: Parts, crawl: Crawl, rows: Sequence[Row]) -> tuple[list[Made], list[tuple[Row, Exception]]]:
    made: list[Made] = []
    failed: list[tuple[Row, Exception]] = []
    until = time.monotonic() + _MOST_S
    for row in rows:
        if (made or failed) and time.monotonic() > until:
            break
        try:
            made.append(Made(row, _found(parts, crawl, row)))
        except Unavailable:
            raise  # all rows stay, and are due again after their lease
        except Exception as error:
            failed.append((row._replace(attempts=1), error))
    return made, failed


def _found(parts: Parts, crawl: Crawl, row: Row) -> dict[str, Any]:
    began = time.thread_time()
    found: dict[str, Any] = {"extract": extraction.extract(parts, crawl, row, {})}
    between = time.thread_time()
    found["score"] = extraction.score_items(parts, crawl, row, found)
    count("stage_extract_cpu_us", int((between - began) * 1_000_000))
    count("stage_score_cpu_us", int((time.thread_time() - between) * 1_000_000))
    return found


def _finish(
    tx: Any, crawl: Crawl, schema_hash: str, rows: Sequence[Row], made: Sequence[Made],
    failed: Sequence[tuple[Row, Exception]], now_ms: int, keep: Keep,
) -> None:  # fmt: skip
    """Store what was made, and give back the rows for which there was no time."""
    done = outbox.done_some(tx, [one.row.n for one in made])
    for row, found in made:
        if row.n in done:
            keep(tx, crawl, schema_hash, row, found, now_ms)
    outbox.tried(tx, [row.n for row, _ in failed])
    seen = {one.row.n for one in made} | {row.n for row, _ in failed}
    outbox.give_back(tx, [row.n for row in rows if row.n not in seen], now_ms)
