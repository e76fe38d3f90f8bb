"""Commands that may speak to an API instead of the local folder: --api URL or CURTSY_API_URL, with CURTSY_API_KEY."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from curtsy.cli import show
from curtsy.client.http import Client, key_around, word

Api = Annotated[
    str | None,
    typer.Option(
        "--api",
        metavar="URL",
        envvar="CURTSY_API_URL",
        help="Ask the API at this address (its key in CURTSY_API_KEY) instead of the local folder.",
    ),
]


def client(api: str) -> Client:
    return Client(api, key_around())


def status(api: str, crawl: str, all_: bool, as_json: bool) -> None:
    if not all_:
        _show(client(api).get(f"/v1/crawls/{word(crawl)}"), as_json)
        return
    found = [_line(one) for one in client(api).items("/v1/crawls")]
    if as_json:
        show.document({"crawls": found})
    else:
        columns = ["id", "state", "lane", "pages", "created", "ended"]
        show.table(["crawl", *columns[1:]], [[one[column] for column in columns] for one in found])


def change(api: str, crawl: str, verb: str, as_json: bool) -> None:
    """`pause`, `resume` or `cancel`."""
    asked = client(api)
    found = asked.get(f"/v1/crawls/{word(crawl)}")
    _show(asked.post(f"/v1/crawls/{found['id']}/{verb}"), as_json)


def _line(one: dict[str, Any]) -> dict[str, Any]:
    return {name: one[name] for name in ("id", "state", "lane", "pages", "created", "ended")}


def _show(found: dict[str, Any], as_json: bool) -> None:
    """The same lines and fields as of a crawl in the local folder, and what only the API knows."""
    counts = found["counts"]
    if as_json:
        ledger = {name: counts[name] for name in ("pages", "done", "skipped", "failed", "pending")}
        ledger["failed_stages"] = counts.get("failed_stages", {})
        ledger["pending_render"] = counts.get("pending_render", 0)
        rate = {"pages_per_s": found["pages_per_s"], "estimated_end": found["estimated_end"]}
        show.document({"id": found["id"], "state": found["state"], **ledger, **rate})
        return
    reason = f" ({found['reason']})" if found["reason"] else ""
    show.say(f"crawl         {found['id']}")
    show.say(f"state         {found['state']}{reason}")
    show.say(f"pages         {counts['pages']:,}, {found['pages_per_s']:,.1f}/s")
    show.say(f"done          {counts['done']:,}")
    show.say(f"pending       {show.pending(counts['pending'], counts.get('pending_render', 0))}")
    show.say(f"skipped       {show.reasons(counts['skipped'])}")
    show.say(f"dead letters  {show.reasons(counts['failed'] | counts.get('failed_stages', {}))}")
    if found["estimated_end"]:
        show.say(f"ends about    {found['estimated_end'][:19]}Z")
