"""`keys`: API keys for clients on other machines."""

from __future__ import annotations

from typing import Annotated

import typer

from curtsy.cli import show
from curtsy.cli.commands import Commands
from curtsy.cli.options import Config, DataDir, LocalOptions, Wide
from curtsy.core import clock
from curtsy.core.errors import UsageError
from curtsy.core.times import length_s, timestamp
from curtsy.store import keys as stored_keys
from curtsy.store.engine import Store
from curtsy.web.auth import SCOPES, new_key

app = Commands("Create, list and revoke API keys.")


@app.command()
def create(
    shared: LocalOptions,
    name: Annotated[str, typer.Option("--name", metavar="TEXT", help="Owner or purpose of the key.")],
    scopes: Annotated[
        str,
        typer.Option(
            "--scopes",
            metavar="read,write,admin",
            help="What it may do: read, write, admin, fast. write includes read; admin includes both.",
        ),
    ] = "read",
    expires: Annotated[
        str, typer.Option("--expires", metavar="90d|never", help="How long it is valid: 12h, 90d or never.")
    ] = "90d",
) -> None:
    """Create a key. It is printed once; only its digest is stored."""
    words = tuple(dict.fromkeys(word.strip() for word in scopes.split(",") if word.strip()))
    if not words or any(word not in SCOPES for word in words):
        raise UsageError(f"Invalid --scopes {scopes!r}. Use {', '.join(SCOPES)}, separated by commas.")
    now_ms = clock.now_ms()
    secret, key = new_key(name, words, now_ms, _expiry_ms(expires, now_ms))
    with _opened(shared) as store:
        store.run(stored_keys.create, key)
    if not shared.printed({"key": secret, "id": key.id, "scopes": words, "expires": timestamp(key.expires_ms)}):
        show.say(secret)
        show.note(f"Key {key.id} may {', '.join(words)}, until {timestamp(key.expires_ms) or 'it is revoked'}.")
        show.note("It is not shown again. Use it as CURTSY_API_KEY, or as 'Authorization: Bearer <key>'.")


@app.command(name="list")
def list_keys(shared: LocalOptions, wide: Wide = False) -> None:
    """List the keys, newest first."""
    with _opened(shared) as store, store.read() as tx:
        found = stored_keys.list_all(tx)
    now_ms = clock.now_ms()
    rows = [
        {
            "id": key.id,
            "name": key.name,
            "scopes": ",".join(key.scopes),
            "valid": key.is_valid(now_ms),
            "created": timestamp(key.created_ms),
            "expires": timestamp(key.expires_ms),
            "revoked": timestamp(key.revoked_ms),
            "used": timestamp(key.used_ms),
        }
        for key in found
    ]
    if not shared.printed({"keys": rows}):
        columns = ["id", "name", "scopes", "valid", "created", "expires", "revoked", "used"]
        show.table(columns, [[row[column] for column in columns] for row in rows], wide)


@app.command()
def revoke(
    id: Annotated[str, typer.Argument(metavar="ID", help="Id of a key, as `curtsy keys list` shows it.")],
    config: Config = None,
    data_dir: DataDir = None,
) -> None:
    """Revoke a key; its next request is refused."""
    with _opened(LocalOptions(config=config, data_dir=data_dir)) as store:
        if not store.run(stored_keys.revoke, id, clock.now_ms()):
            raise UsageError(f"There is no key {id!r}. `curtsy keys list` lists them.")
    show.say(f"Key {id} is revoked.")


def _expiry_ms(text: str, now_ms: int) -> int | None:
    return None if text == "never" else now_ms + int(length_s(text) * 1000)


def _opened(shared: LocalOptions) -> Store:
    return Store.open(shared.settings().effective_store_url)
