"""`init`: a project folder from four answers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from curtsy.cli import seeds, show
from curtsy.cli.options import AsJson
from curtsy.control import project
from curtsy.core.errors import UsageError
from curtsy.core.settings import one_line
from curtsy.grounding import schema as schemas

T = TypeVar("T")
_NO_ANSWER = (
    "Standard input has no more answers. Use options instead: --site or --from, --profile or --columns, --contact, and "
    "the folder as an argument."
)


def init(
    folder: Annotated[
        Path | None, typer.Argument(metavar="FOLDER", help="The project folder. If omitted, Curtsy asks for it.")
    ] = None,
    sites: Annotated[
        list[str] | None, typer.Option("--site", metavar="URL", help="A website to crawl; may be repeated.")
    ] = None,
    from_: Annotated[Path | None, typer.Option("--from", metavar="FILE", help="Sites, one per line.")] = None,
    profile: Annotated[
        str | None, typer.Option("--profile", metavar="NAME", help=f"What you want: {', '.join(project.PROFILES)}.")
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option("--columns", metavar="COLUMNS", help="Records with these values: name, founded:integer, ..."),
    ] = None,
    per: Annotated[
        str, typer.Option("--per", metavar="page|site", help="One record of --columns per page or per site.")
    ] = "page",
    contact: Annotated[
        str | None, typer.Option("--contact", metavar="ADDRESS", help="Your e-mail address, or a page about the crawl.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a project folder with settings and seeds.

    Curtsy asks for everything that the options leave out. Afterwards, `curtsy crawl` in that folder needs no options.
    """
    if sites or from_:
        found = _sites(sites or [], from_)
    else:
        found = _ask("Sites (URLs, with spaces between)", lambda answer: _sites(answer.split(), None))
    if profile is None and columns is None:
        question = f"What do you want from them ({', '.join(project.PROFILES)}, or columns)"
        chosen, schema = _ask(question, lambda answer: _wanted(answer, per))
    else:
        chosen, schema = _job(profile, columns, per)
    if contact:
        contact = _contact(contact)
    else:
        contact = _ask("Contact for the owners of the sites (e-mail address or URL)", _contact)
    files = project.files_of(chosen, found, contact, schema)

    def write(place: Path) -> Path:
        project.write(place, files)
        return place

    place = write(folder) if folder else _ask("Folder", lambda answer: write(Path(answer)), default=".")
    if as_json:
        show.document({"folder": str(place), "files": sorted(files), "sites": len(found)})
        return
    show.say(f"{show.number(len(files), 'file')} written to {place}: {', '.join(sorted(files))}")
    show.say("Next: " + ("" if place == Path() else f"cd {place} && ") + "curtsy crawl")


def _ask(question: str, read: Callable[[str], T], default: str | None = None) -> T:
    """Ask until the answer is valid."""

    def checked(answer: str) -> T:
        try:
            return read(answer)
        except UsageError as error:
            raise typer.BadParameter(str(error)) from error

    if sys.stdin is None:
        raise UsageError(_NO_ANSWER)
    try:
        found: T = typer.prompt(question, default=default, value_proc=checked)
    except typer.Abort as error:
        if not isinstance(error.__context__, EOFError):
            raise
        raise UsageError(_NO_ANSWER) from None
    return found


def _sites(given: list[str], file: Path | None) -> list[str]:
    found = list(seeds.read(given, file))
    if not found:
        raise UsageError("Name at least one site, or a file with --from.")
    return found


def _contact(answer: str) -> str:
    try:
        return one_line(answer)
    except ValueError as error:
        raise UsageError(f"The contact {error}.") from error


def _wanted(answer: str, per: str) -> tuple[project.Profile, dict[str, object] | None]:
    return _job(answer, None, per) if answer in project.PROFILES else _job(None, answer, per)


def _job(profile: str | None, columns: str | None, per: str) -> tuple[project.Profile, dict[str, object] | None]:
    if profile is not None and profile not in project.PROFILES:
        raise UsageError(f"Unknown profile: {profile!r}. Use one of: {', '.join(project.PROFILES)}.")
    if per not in ("page", "site"):
        raise UsageError(f"Invalid --per {per!r}. Use page or site.")
    chosen = project.PROFILES[profile] if profile is not None else project.Profile(about="records with your columns")
    if columns is None:
        return chosen, None
    schema = project.schema_of(columns, per)
    schemas.inline(schema)  # it must be usable
    return chosen, schema
