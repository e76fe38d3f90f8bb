"""`judge`: extraction judged against a truth file."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

from curtsy.cli import DEAD_LETTERS, show
from curtsy.cli.options import AsJson
from curtsy.core.errors import UsageError
from curtsy.records import truth
from curtsy.records.truth import Mistake, Report

#: mistakes that are printed; --json has more
_SHOWN = 40


def judge(
    files: Annotated[list[Path], typer.Argument(metavar="TRUTH", help="Truth files: .jsonl or .toml.")],
    floors: Annotated[
        Path | None, typer.Option("--floors", metavar="FILE", help="Minimum values, by the name of the truth file.")
    ] = None,
    missed: Annotated[bool, typer.Option("--missed", help="Also list values that were not found.")] = False,
    as_json: AsJson = False,
) -> None:
    """Judge extraction against labeled pages.

    No model is used, and nothing is fetched or stored.
    """
    limits = {} if floors is None else _floors(floors)
    reports = {path.stem: truth.judge(truth.load(path)) for path in files}
    problems = {name: truth.below(report, limits.get(name, {})) for name, report in reports.items()}
    if as_json:
        show.document({name: {**one.as_json(), "below": problems[name]} for name, one in reports.items()})
    else:
        for name, report in reports.items():
            _print(name, report, missed)
            for problem in problems[name]:
                show.say(f"below its floor: {problem}")
    if any(problems.values()):
        raise typer.Exit(DEAD_LETTERS)


def _floors(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{path} is not valid TOML: {error}") from error


def _print(name: str, report: Report, missed: bool) -> None:
    show.say(f"\n{name}: {report.cases} cases, {len(report.wrong)} wrong values ({report.misattributed} of decoys), "
             f"{len(report.unsupported)} without a valid span")  # fmt: skip
    rows = [
        (path, one.right, one.wrong, one.missed, _share(one.precision), _share(one.recall))
        for path, one in [*sorted(report.fields.items()), ("total", report.total)]
    ]
    show.table(["field", "right", "wrong", "missed", "precision", "recall"], rows, wide=False)
    for mistake in [*report.wrong, *report.unsupported][:_SHOWN]:
        show.say(_line(mistake))
    if missed:
        for case, path, value in report.missed:
            show.say(f"  missed  {case}  {path}  {value!r}")


def _line(one: Mistake) -> str:
    quote = " ".join(one.quote.split())
    return f"  wrong   {one.case}  {one.path}  {one.value!r} <- {quote[:80]!r}{f'  ({one.why})' if one.why else ''}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
