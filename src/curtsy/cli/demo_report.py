"""What `demo --schema` prints: records, the review queue, and a comparison with the known facts of the tiny web."""

from __future__ import annotations

import json
from typing import Any

from curtsy.cli import show
from curtsy.core.model import Crawl
from curtsy.core.record import Record
from curtsy.records import evaluation, evidence, serialize
from curtsy.records.evaluation import Report, Tally
from curtsy.store import records
from curtsy.store.engine import Store

#: records and held records that are printed
_RECORDS = 5
_HELD = 15
_INVENTIONS = 5


def judged(store: Store, crawl: Crawl) -> bool:
    """Print the report; False if a value without support was exported."""
    show.say()
    print_records(store, crawl)
    if crawl.schema != "organization":
        return True
    report = evaluation.evaluate(store, crawl, evaluation.organization_truth, evaluation.organization_kind)
    print_report(report)
    return not report.unsupported


def print_records(store: Store, crawl: Crawl) -> None:
    """Some records with their evidence, and those that need a review."""
    with store.read() as tx:
        counts = records.counts(tx, crawl.n, crawl.schema_hash)
    show.say(f"records       {show.reasons(counts)}")
    for record in _chosen(store, crawl):
        total = record.scores.get("total")
        scored = f", {record.scores['rubric']} {total:.0f} of 100" if total is not None else ""
        show.say(f"\n  {record.url}  (record {record.n}, words {record.confidence.get('words')}{scored})")
        for field in record.fields:
            value = json.dumps(field["value"], ensure_ascii=False)
            show.say(f"    {field['path']:<28} {_cut(value, 60)}  <- {field['rung']}: {_said(field)}")
    show.say("  ... `curtsy records` prints all of them.")
    show.say("\nreview queue")
    for record in _held(store, crawl):
        why = ", ".join(record.confidence.get("reasons", ()))
        show.say(
            f"  {record.n:>5}  {why:<12} {len(record.fields)} values, {len(record.withheld)} withheld  {record.url}"
        )
    show.say("  Show one: `curtsy review show N`; decide: `curtsy review approve|reject|correct N`.")


def _chosen(store: Store, crawl: Crawl) -> list[Record]:
    """The first records, and the first with evidence from a document."""
    chosen: list[Record] = []
    for record in serialize.of_crawl(store, crawl.id):
        if len(chosen) < _RECORDS - 1 or _is_of_document(record):
            chosen.append(record)
        if len(chosen) >= _RECORDS and any(map(_is_of_document, chosen)):
            break
    return chosen


def _is_of_document(record: Record) -> bool:
    return any("part" in one for field in record.fields for one in field["evidence"])


def _said(field: dict[str, Any]) -> str:
    """The quote of a value, with its labels in a table and its place in a document."""
    if not field["evidence"]:
        return "''"
    one = field["evidence"][0]
    labels, part = evidence.labels_of(one), one.get("part")
    said = f"{labels}: {one['quote']}" if labels else one["quote"]
    where = "" if part is None else f" ({one['url'].rpartition('/')[2]}, {part['kind']} {part['number']})"
    return f"{_cut(' '.join(said.split()), 60)!r}{where}"


def _held(store: Store, crawl: Crawl) -> list[Record]:
    with store.read() as tx:
        return records.chunk(tx, crawl.n, 0, _HELD, None, ("held",), crawl.schema_hash)[0]


def print_report(report: Report) -> None:
    """Precision and recall."""
    show.say("\ncompared with the known facts of the tiny web (exported values only)")
    show.say(f"  {'field':<28} {'right':>6} {'wrong':>6} {'missed':>7} {'precision':>10} {'recall':>7}")
    for name, tally in [*sorted(report.fields.items()), ("all", report.total)]:
        _row(name, tally)
    show.say("by rung")
    for name in sorted(report.rungs):
        _row(name, report.of_rung(name))
    show.say("by the form in which the site states its facts")
    for name, tally in sorted(report.kinds.items()):
        _row(name, tally)
    show.say(f"records exported {report.exported:,}, held for review {report.held:,}")
    show.say(f"values withheld {report.withheld:,}, of them not true {report.withheld_wrong:,}")
    for url, path, value in report.inventions[:_INVENTIONS]:
        show.say(
            f"  invented by the model and withheld: {path} = {json.dumps(value, ensure_ascii=False)[:80]} of {url}"
        )
    for url, path, value in report.mistakes[:_INVENTIONS]:
        show.say(f"  exported but wrong: {path} = {json.dumps(value, ensure_ascii=False)[:80]} of {url}")
    show.say(f"unsupported values exported: {report.unsupported:,}")


def _row(name: str, tally: Tally) -> None:
    shares = [f"{share:.3f}" if share is not None else "-" for share in (tally.precision, tally.recall)]
    show.say(f"  {name:<28} {tally.right:>6} {tally.wrong:>6} {tally.missed:>7} {shares[0]:>10} {shares[1]:>7}")


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."
