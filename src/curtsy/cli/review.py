"""`review ...`: decisions about records that need a person."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from curtsy.cli import next_commands
from curtsy.cli import show as shown
from curtsy.cli.backends import SharedOptions
from curtsy.cli.commands import Commands
from curtsy.cli.options import LocalOptions, OfCrawl, Wide, number_of
from curtsy.cli.show import say
from curtsy.client.backend import Backend
from curtsy.core.errors import UsageError
from curtsy.export.page_rows import segments_of
from curtsy.records import evidence, golden_cases
from curtsy.records.review_queue import MOST_AT_ONCE

app = Commands("Review records that need a decision.")
Which = Annotated[int, typer.Argument(metavar="RECORD", min=1, max=2**63 - 1, help="Number of a record.")]
By = Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who decides.", show_default="your login name")]
Note = Annotated[str, typer.Option("--note", metavar="TEXT", help="The reason.", show_default=False)]
Golden = Annotated[bool, typer.Option("--golden", help="Mark the record for export-golden.")]
#: characters shown around a quote
_AROUND = 60


Needs = Annotated[
    str | None,
    typer.Option(
        "--needs",
        metavar="record|field",
        help="Only records held as a whole, or only published ones with contradicted fields.",
    ),
]
Reason = Annotated[
    str | None, typer.Option("--reason", metavar="REASON", help="Only records that wait for this reason, such as thin.")
]
OfHost = Annotated[str | None, typer.Option("--host", metavar="HOST", help="Only of this host.")]
WithField = Annotated[
    str | None, typer.Option("--field", metavar="POINTER", help="Only with a value of this field: /contact/email.")
]
Confident = Annotated[
    float | None,
    typer.Option(
        "--min-confidence", min=0, max=1, metavar="SHARE", help="Only if at least this share of values has evidence."
    ),
]
Doubtful = Annotated[
    float | None,
    typer.Option(
        "--max-confidence", min=0, max=1, metavar="SHARE", help="Only if at most this share of values has evidence."
    ),
]
Limit = Annotated[int, typer.Option("--limit", min=1, max=10**6, metavar="N", help="At most N.")]


@app.command("list")
def list_(
    shared: SharedOptions,
    crawl: OfCrawl = None,
    needs: Needs = None,
    reason: Reason = None,
    host: OfHost = None,
    field: WithField = None,
    min_confidence: Confident = None,
    max_confidence: Doubtful = None,
    limit: Limit = 100,
    wide: Wide = False,
) -> None:
    """List the records that need a decision, oldest first."""
    filters = _filters(needs, reason, host, field, min_confidence, max_confidence)
    found = shared.backend().reviews(crawl, limit, **filters)
    if shared.printed({"records": found}):
        return
    _table(found, wide)


@app.command()
def many(
    shared: SharedOptions,
    decision: Annotated[str, typer.Argument(metavar="approve|reject", help="The decision for all of them.")],
    crawl: OfCrawl = None,
    needs: Needs = "record",
    reason: Reason = None,
    host: OfHost = None,
    field: WithField = None,
    min_confidence: Confident = None,
    max_confidence: Doubtful = None,
    limit: Limit = 100,
    by: By = None,
    note: Note = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List them; decide nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    wide: Wide = False,
) -> None:
    """Approve or reject many records after a preview."""
    if decision not in ("approve", "reject"):
        raise UsageError(f"Invalid decision {decision!r}. Use approve or reject.")
    used = shared.backend()
    filters = _filters(needs, reason, host, field, min_confidence, max_confidence)
    found = used.reviews(crawl, limit, **filters)
    if not shared.as_json:
        _table(found, wide)
    done: dict[str, Any] = {"batch": None, "records": [], "refused": []}
    if not found or dry_run:
        pass
    elif not yes and not typer.confirm(f"{decision.capitalize()} {shown.number(len(found), 'record')}?"):
        raise UsageError("Nothing was decided.")
    else:
        done = _decide_many(used, [int(one["id"]) for one in found], {"decision": decision, "by": by, "note": note})
    if shared.as_json:
        facts = {"decision": decision, "matching": len(found), "dry_run": dry_run}
        shown.document(facts | done | {"records": [int(id) for id in done["records"]]})
        return
    decided = shown.number(len(done["records"]), "record")
    shown.note(f"{decided} decided; {shown.number(len(found), 'record')} matched.")
    _say_refused(done)
    if done["records"]:
        undo = next_commands.command("review", "undo", "--batch", done["batch"])
        shown.note(f"Undo with: {undo}")


def _decide_many(used: Backend, ids: list[int], decision: dict[str, Any]) -> dict[str, Any]:
    """In parts that one request may have; their decisions are undone one by one."""
    done: dict[str, Any] = {"batch": None, "records": [], "refused": []}
    for start in range(0, len(ids), MOST_AT_ONCE):
        some = used.decide_many(ids[start : start + MOST_AT_ONCE], decision)
        batches = [one for one in (done["batch"], some["batch"]) if one]
        done = {name: done[name] + some[name] for name in ("records", "refused")} | {"batch": ",".join(batches)}
    return done


def _say_refused(done: dict[str, Any]) -> None:
    for one in done["refused"]:
        shown.note(f"Record {one['id']} stays as it is: {one['detail']}")


@app.command("undo")
def undo_(
    shared: SharedOptions,
    record: Annotated[
        int | None, typer.Argument(metavar="RECORD", min=1, max=2**63 - 1, help="Number of a record.")
    ] = None,
    batch: Annotated[
        str | None, typer.Option("--batch", metavar="ID", help="Undo a whole decision of `review many`.")
    ] = None,
    by: By = None,
    note: Note = "",
) -> None:
    """Undo a decision about a record or about many."""
    if (record is None) == (batch is None):
        raise UsageError("Give the number of a record, or --batch ID.")
    used = shared.backend()
    if record is not None:
        found = used.undo_review(record, by, note)
        if not shared.printed(found):
            shown.say(f"Record {record} is {found['status']}.")
        return
    done: dict[str, Any] = {"batch": batch, "records": [], "refused": []}
    for one in (batch or "").split(","):
        some = used.undo_batch(one, by, note)
        done |= {name: done[name] + some[name] for name in ("records", "refused")}
    if not done["records"] and not done["refused"]:
        raise UsageError(f"There is no decision {batch!r} to undo.")
    if not shared.printed(done | {"records": [int(id) for id in done["records"]]}):
        shown.say(f"{shown.number(len(done['records']), 'record')} as before the decision.")
        _say_refused(done)


def _filters(
    needs: str | None, reason: str | None, host: str | None, field: str | None, min_confidence: float | None,
    max_confidence: float | None,
) -> dict[str, Any]:  # fmt: skip
    if needs not in (None, "record", "field"):
        raise UsageError(f"Invalid --needs {needs!r}. Use record or field.")
    return {
        "needs": needs, "reason": reason, "host": host, "field": field, "min_confidence": min_confidence,
        "max_confidence": max_confidence,
    }  # fmt: skip


def _table(found: list[dict[str, Any]], wide: bool) -> None:
    rows = [
        (one["id"], one["schema"], _why(one), len(one["fields"]), len(one["withheld"]), one["url"]) for one in found
    ]
    shown.table(["record", "schema", "why", "values", "withheld", "url"], rows, wide)


def _why(one: dict[str, Any]) -> str:
    if one["status"] == "published":
        return f"contradicted: {' '.join(one['contradicted'])}"
    return ", ".join(one["confidence"].get("reasons", ()))


@app.command()
def show(shared: SharedOptions, record: Which) -> None:
    """Show a record with its evidence and decisions."""
    found = shared.backend().review(record)
    if not shared.printed(found):
        _print(found)


@app.command()
def approve(shared: SharedOptions, record: Which, by: By = None, note: Note = "", golden: Golden = False) -> None:
    """Publish a record; withheld values stay withheld.

    A record that is already published stays without its contradicted fields.
    """
    decision = {"decision": "approve", "by": by, "note": note, "golden": golden}
    _decide(shared, record, decision)


@app.command()
def reject(shared: SharedOptions, record: Which, by: By = None, note: Note = "") -> None:
    """Never publish a record."""
    _decide(shared, record, {"decision": "reject", "by": by, "note": note})


@app.command()
def correct(
    shared: SharedOptions,
    record: Which,
    values: Annotated[
        list[str],
        typer.Option("--set", metavar="POINTER=JSON", help="The correct value: '/founded_year=1954'; null removes it."),
    ],
    by: By = None,
    note: Note = "",
    golden: Golden = False,
) -> None:
    """Correct values and publish the record."""
    decision = {"decision": "correct", "by": by, "note": note, "correction": _correction(values), "golden": golden}
    _decide(shared, record, decision)


@app.command()
def choose(
    shared: SharedOptions,
    record: Which,
    values: Annotated[
        list[str],
        typer.Option("--set", metavar="POINTER=JSON", help="One of the values: '/founded_year=1954'; null: none."),
    ],
    by: By = None,
    note: Note = "",
) -> None:
    """Choose among the contradicting values of a field.

    `curtsy review show RECORD` lists them with their quotes. The record gets the chosen value.
    """
    decision = {"decision": "choose", "by": by, "note": note, "choice": _correction(values)}
    _decide(shared, record, decision)


@app.command("export-golden")
def export_golden(
    shared: LocalOptions,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the cases, one folder each.")],
    record: Annotated[
        list[int] | None, typer.Option("--record", metavar="N", help="This record, even if unmarked; may be repeated.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All approved or corrected records.")] = False,
    crawl: OfCrawl = None,
) -> None:
    """Write reviewed records as test cases.

    A case has the stored pages, the schema and the correct values.
    """
    with shared.stored() as (settings, store):
        n, segments = number_of(store, crawl), segments_of(settings)
        made = golden_cases.export_golden(store, segments, out, crawl=n, every=every, only=frozenset(record or ()))
    if not shared.printed({"cases": [str(case) for case in made]}):
        shown.say(f"{len(made):,} golden cases are in {out}")


# What they share


def _correction(values: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in values:
        pointer, equals, value = one.partition("=")
        if not equals or not pointer.startswith("/"):
            raise UsageError(f"--set {one!r} is not POINTER=JSON, for example '/founded_year=1954'.")
        try:
            found[pointer] = json.loads(value)
        except ValueError:
            found[pointer] = value  # text needs no quotation marks
    return found


def _decide(shared: SharedOptions, record: int, decision: dict[str, Any]) -> None:
    found = shared.backend().decide(record, decision)
    if not shared.printed(found):
        shown.say(f"Record {record} is {found['status']}.")


def _print(found: dict[str, Any]) -> None:
    why = ", ".join(found["confidence"].get("reasons", ()))
    say(f"record {found['id']}, version {found['version']}: {found['status']}{f' ({why})' if why else ''}")
    say(f"{found['schema']} of {found['url']}")
    for problem in found["confidence"].get("problems", ()):
        say(f"  does not fit the schema: {problem}")
    texts = {one["sha256"]: one["text"] for one in found["sources"]}
    for path in found["contradicted"]:
        candidates = [one for one in found["withheld"] if one["path"] == path]
        say(f"  CONTRADICTED {path}: {shown.number(len(candidates), 'value')}, none is published")
        for field in candidates:
            say(f"    {_as_json(field['value'])}  [{field['rung']}]")
            for one in field["evidence"]:
                say(f"      {_context(texts.get(one['sha256']), one)}  ({evidence.place_of(one)})")
        example = f"{path}={_as_json(candidates[0]['value'])}"
        say(f"    Choose one: {next_commands.command('review', 'choose', str(found['id']), '--set', example)}")
    for field in found["fields"]:
        value = _as_json(field["value"])
        say(f"  {field['path']} = {value}  [{field['verdict']}, {field['rung']}]")
        for one in field["evidence"]:
            labels = evidence.labels_of(one)
            said = _context(texts.get(one["sha256"]), one)
            say(f"      {f'{labels}: ' if labels else ''}{said}  ({evidence.place_of(one)})")
    for field in (one for one in found["withheld"] if one["path"] not in found["contradicted"]):
        value = _as_json(field["value"])
        say(f"  WITHHELD {field['path']} = {value}  [{field['note'] or field['verdict']}, {field['rung']}]")
        if field["claimed_quote"]:
            say(f"      claimed: {field['claimed_quote']!r}")
    for one in found["reviews"]:
        note = f": {one['note']}" if one["note"] else ""
        say(f"  {one['at']} {one['who']} {one['decision']}{note}")


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _context(text: str | None, one: dict[str, Any]) -> str:
    """The quote with the text around it."""
    if text is None or one["source"] != "text":
        return f"»{one['quote']}«"
    start, end = one["start"], one["end"]
    before, after = text[max(0, start - _AROUND) : start], text[end : end + _AROUND]
    return " ".join(f"{before}»{text[start:end]}«{after}".split())
