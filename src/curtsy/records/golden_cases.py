"""Reviewed records as golden cases for tests of extraction."""

from __future__ import annotations

import json
from pathlib import Path

from curtsy.core.errors import UsageError
from curtsy.records import plan as plans
from curtsy.records.review import review_case
from curtsy.records.review_undo import last_decision
from curtsy.store import pages, reviews
from curtsy.store.engine import Store
from curtsy.store.segments import SegmentStore, read_page


def export_golden(
    store: Store, segments: SegmentStore, out: Path, *, crawl: int | None = None, every: bool = False,
    only: frozenset[int] = frozenset(),
) -> list[Path]:  # fmt: skip
    """Write a folder for each reviewed record that becomes a golden case: its stored pages, its schema and the right
    values. Existing cases are overwritten. A record of `only` that cannot become a case is an error."""
    for n in only:
        review_case(store, n)
    made: dict[int, Path] = {}
    after = 0
    while True:
        with store.read() as tx:
            found = reviews.golden(tx, crawl, every or bool(only), after)
        if not found:
            if left := sorted(only - set(made)):
                raise UsageError(f"Record {left[0]} cannot be a golden case: approve or correct it first.")
            return list(made.values())
        for review in found:
            if (not only or review.record in only) and review.record not in made:
                case = _case(store, segments, review.record, out)
                if case is not None:
                    made[review.record] = case
        after = found[-1].n


def _case(store: Store, segments: SegmentStore, n: int, out: Path) -> Path | None:
    known = review_case(store, n)
    record = known.record
    plan = plans.of_hashes(store, record.schema, record.schema_hash)
    if record.status != "published" or plan is None:
        return None
    folder = out / f"{_slug(plan.schema.name)}-{n}"
    folder.mkdir(parents=True, exist_ok=True)
    listed = []
    cited = {one.page: one.url for one in known.sources} or (
        {record.subject: record.url} if record.kind == "page" else {}
    )
    for place, (fp, url) in enumerate(sorted(cited.items(), key=lambda item: item[1])):
        with store.read() as tx:
            page = pages.get(tx, record.crawl, bytes.fromhex(fp))
            body = None if page is None else read_page(tx, segments, page)
        if page is None or body is None:
            continue
        name = f"page-{place}.{'html' if page.document is None else page.document.kind}"
        (folder / name).write_bytes(body.body)
        listed.append({"url": url, "content_type": page.content_type, "body": name})
    last = last_decision(known.history) or known.history[-1]
    case = {
        "schema": plan.schema.dump(),
        "pages": listed,
        "expected": record.data,
        "review": {"decision": last.decision, "who": last.who, "at_ms": last.at_ms, "note": last.note},
    }
    (folder / "case.json").write_text(json.dumps(case, ensure_ascii=False, indent=2) + "\n", "utf-8")
    return folder


def _slug(name: str) -> str:
    return "".join(char if char.isalnum() else "-" for char in name).strip("-")[:60] or "record"
