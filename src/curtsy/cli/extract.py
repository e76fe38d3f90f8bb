"""`extract`: records of a crawl extracted again from its stored pages; nothing is fetched."""

from __future__ import annotations

import asyncio
import json
import signal
from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from curtsy.cli import DEAD_LETTERS, INTERRUPTED, show
from curtsy.cli.options import JudgeModel, LocalOptions, Verify
from curtsy.core import clock
from curtsy.core.errors import UsageError
from curtsy.core.model import CrawlState
from curtsy.core.settings import Settings
from curtsy.core.shutdown import StopFlag
from curtsy.export.page_rows import segments_of
from curtsy.records import plan as plans
from curtsy.records import reextraction, stages
from curtsy.records.extraction import Parts
from curtsy.records.reextraction import Difference, Run
from curtsy.store import crawls, failures, records
from curtsy.store.engine import Store

#: differences that are printed; --json has all of them
_SHOWN = 200
#: fields of a crawl that concern its records
_PLANNED = ("schema", "schema_hash", "per", "rubric", "rubric_hash", "llm", "verify", "judge_model")
_NO_RUBRIC: dict[str, Any] = {"rubric": None, "rubric_hash": None}


def extract(
    shared: LocalOptions,
    crawl: Annotated[str, typer.Option("--crawl", metavar="ID", help="A finished crawl: its id, or `last`.")] = "last",
    schema: Annotated[
        str | None,
        typer.Option(
            "--schema", metavar="SCHEMA", help="A name, module:Class or FILE.json.", show_default="that of the crawl"
        ),
    ] = None,
    rubric: Annotated[
        str | None,
        typer.Option("--rubric", metavar="RUBRIC", help="A name, FILE.toml or none.", show_default="that of the crawl"),
    ] = None,
    llm: Annotated[
        str | None,
        typer.Option(
            "--llm", metavar="MODEL", help="Language model: none, local or endpoint.", show_default="that of the crawl"
        ),
    ] = None,
    verify: Verify = None,
    judge_model: JudgeModel = None,
    diff: Annotated[bool, typer.Option("--diff", help="Show what changed.")] = False,
) -> None:
    """Extract records again from the stored pages of a crawl.

    Nothing is fetched. The crawl must have finished.
    """
    settings = shared.settings(llm=llm)
    models = {"llm": llm, "verify": verify, "judge_model": judge_model}
    run, ended = _run(settings, crawl, schema, rubric, models)
    report = _report(settings, run, diff)
    if not shared.printed(report):
        _print(report, diff)
    if not ended:
        show.note("Interrupted: resume with `curtsy crawl --resume`.")
        raise typer.Exit(INTERRUPTED)
    if report["dead_letters"]:
        raise typer.Exit(DEAD_LETTERS)


def _run(
    settings: Settings, which: str, schema: str | None, rubric: str | None, models: Mapping[str, Any]
) -> tuple[Run, bool]:
    """Run all stages in this process; workers of a fleet on the same store help."""
    with Store.open(settings.effective_store_url, create=False) as store:
        plan = _plan(store, which, schema, rubric, models)
        run = reextraction.begin(store, which, plan, clock.now_ms())
        stop = StopFlag()

        async def work() -> None:
            loop = asyncio.get_running_loop()
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, stop.request)
            await stages.run_all(Parts(settings, store, segments_of(settings)), run.crawl.n, stop)

        asyncio.run(work())
        with store.read() as tx:
            state = crawls.state_of(tx, run.crawl.n)
        return run, state is CrawlState.FINISHED


def _plan(store: Any, which: str, schema: str | None, rubric: str | None, models: Mapping[str, Any]) -> dict[str, Any]:
    """The requested schema, rubric and models; the others stay as the crawl has them."""
    with store.read() as tx:
        known = crawls.get(tx, which, members=False)
    if schema is None and known.schema is None:
        raise UsageError("This crawl has no schema. Name one with --schema.")
    plans.check_model(models["llm"])
    planned = {name: getattr(known, name) for name in _PLANNED}
    planned |= {name: value for name, value in models.items() if value is not None}
    by_schema = {} if schema is None else plans.schema_fields(schema)
    by_rubric = {} if rubric is None else _NO_RUBRIC if rubric == "none" else plans.rubric_fields(rubric)
    definitions = (*by_schema.get("definitions", ()), *by_rubric.get("definitions", ()))
    return {**planned, **by_schema, **by_rubric, "definitions": definitions}


def _report(settings: Settings, run: Run, diff: bool) -> dict[str, Any]:
    with Store.open(settings.effective_store_url, create=False, looks=True) as store:
        found = list(reextraction.compare(store, run)) if diff else []
        with store.read() as tx:
            counts = records.counts(tx, run.crawl.n, run.crawl.schema_hash)
            dead = failures.of_stages(tx, run.crawl.n)
    report: dict[str, Any] = {
        "id": run.crawl.id, "schema": run.crawl.schema, "schema_hash": run.crawl.schema_hash,
        "extracted": run.subjects, "records": counts, "dead_letters": dead,
    }  # fmt: skip
    if diff:
        changed = [one for one in found if one.kind != "unchanged"]
        report["diff"] = {
            "counts": dict(Counter(one.kind for one in changed)),
            "items": [_line(one) for one in changed],
        }
    return report


def _line(one: Difference) -> dict[str, Any]:
    names = ("kind", "url", "subject", "ordinal", "record", "before")
    return {**{name: getattr(one, name) for name in names}, "values": _pairs(one.values), "scores": _pairs(one.scores)}


def _pairs(found: dict[str, tuple[Any, Any]]) -> dict[str, dict[str, Any]]:
    return {path: {"before": before, "after": after} for path, (before, after) in found.items()}


def _print(report: dict[str, Any], diff: bool) -> None:
    show.say(f"extracted     {report['extracted']:,} pages or sites of crawl {report['id']} as {report['schema']}")
    show.say(f"records       {show.reasons(report['records'])}")
    show.say(f"dead letters  {show.reasons(report['dead_letters'])}")
    if not diff:
        return
    items = report["diff"]["items"]
    show.say(f"changes       {show.reasons(report['diff']['counts'])}")
    for one in items[:_SHOWN]:
        show.say(f"{one['kind']} {one['url']}")
        scores = {f"score{path}": value for path, value in one["scores"].items()}
        for path, value in (one["values"] | scores).items():
            before, after = (json.dumps(value[name], ensure_ascii=False) for name in ("before", "after"))
            show.say(f"  {path}: {before} -> {after}")
    if len(items) > _SHOWN:
        show.say(f"... and {len(items) - _SHOWN:,} more; --json prints all.")
