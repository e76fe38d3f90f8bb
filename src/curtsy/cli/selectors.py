"""`selectors ...`: selectors that were learned from verified values."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from curtsy.cli import show as shown
from curtsy.cli.backends import SharedOptions
from curtsy.cli.commands import Commands
from curtsy.cli.options import Wide
from curtsy.cli.show import say
from curtsy.export import page_objects

app = Commands("List, show, forget and export learned selectors.")
Which = Annotated[int, typer.Argument(metavar="SELECTOR", min=1, max=2**63 - 1, help="Number of a selector.")]
OfHost = Annotated[str | None, typer.Option("--host", metavar="HOST", help="Only this host.")]
OfSchema = Annotated[str | None, typer.Option("--schema", metavar="NAME", help="Only this schema.")]


@app.command("list")
def list_(
    shared: SharedOptions,
    host: OfHost = None,
    schema: OfSchema = None,
    every: Annotated[bool, typer.Option("--all", help="Also retired selectors.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10**6, metavar="N", help="At most N.")] = 1000,
    wide: Wide = False,
) -> None:
    """List the learned selectors."""
    found = shared.backend().selectors(host, schema, None if every else "active", limit)
    if shared.printed({"selectors": found}):
        return
    rows = [
        (one["id"], one["state"], one["host"], one["url_shape"], one["field"], shown.one_line(one["selector"]),
         f"{one['found']} of {one['tested']}", one["used"])
        for one in found
    ]  # fmt: skip
    shown.table(["selector", "state", "host", "url", "field", "place", "found in test", "used"], rows, wide)


@app.command("show")
def show_(shared: SharedOptions, selector: Which) -> None:
    """Show a learned selector and the pages that taught it."""
    found = shared.backend().selector(selector)
    if not shared.printed(found):
        _print(found)


@app.command()
def forget(shared: SharedOptions, selector: Which) -> None:
    """Forget a learned selector."""
    found = shared.backend().forget_selector(selector)
    if not shared.printed(found):
        say(f"Selector {selector} is retired. Values that are read from now on can teach {found['field']} again.")


@app.command()
def export(
    shared: SharedOptions,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Python file to write.")],
    host: OfHost = None,
    schema: OfSchema = None,
) -> None:
    """Write the active selectors as web-poet page objects."""
    found = shared.backend().selectors(host, schema, "active", 10**6)
    text, names = page_objects.module_of(found)
    out.write_text(text, "utf-8")
    if not shared.printed({"file": str(out), "page_objects": names, "selectors": len(found)}):
        say(f"{len(names)} page objects with {len(found)} selectors are in {out}")


def _print(found: dict[str, Any]) -> None:
    why = f" ({found['why']})" if found["why"] else ""
    say(f"selector {found['id']}: {found['state']}{why}")
    say(f"{found['field']} of {found['schema']}, on {found['host']}{found['url_shape']}")
    say(f"  place   {shown.one_line(found['selector'], 500)}")
    for name in ("before", "after"):
        if found[name]:
            say(f"  {name:<7} {found[name]!r}")
    say(f"  learned from {found['examples']} pages, tested on {found['tested']}, found on {found['found']}")
    say(f"  used on {found['used']} of {found['pages']} pages; the model or a person has read {found['pages_read']}")
    for url in found["taught_by"]:
        say(f"  taught by {url}")
