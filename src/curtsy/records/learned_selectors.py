"""Learned selectors for people and programs: list, show, forget."""

from __future__ import annotations

from typing import Any

from curtsy.core.errors import UnknownSelector
from curtsy.extract.learned import Place
from curtsy.store import pages, templates
from curtsy.store.engine import Store

#: pages that taught a selector, which `show` lists
_MAX_PAGES = 10


def find(
    store: Store, after: int = 0, limit: int = 100, *, host: str | None = None, schema: str | None = None,
    state: str | None = "active",
) -> list[dict[str, Any]]:  # fmt: skip
    """Learned selectors by number; times are milliseconds. `state` None: also retired ones."""
    with store.read() as tx:
        return [_shown(row) for row in templates.listed(tx, after, limit, host=host, schema=schema, state=state)]


def show(store: Store, n: int) -> dict[str, Any]:
    """One selector, with pages that taught it, newest first."""
    with store.read() as tx:
        rows = templates.listed(tx, 0, 1, n=n)
        if not rows:
            raise unknown(n)
        taught = templates.pages_of(tx, rows[0]["template"], True, _MAX_PAGES)
        found = [pages.get(tx, one.crawl, bytes.fromhex(one.page)) for one in taught]
    return _shown(rows[0]) | {"taught_by": [page.url for page in found if page is not None]}


def forget(store: Store, n: int, now_ms: int) -> dict[str, Any]:
    """Retire a selector. Curtsy asks the model again; only values that are read from now on teach its field."""
    if store.run(templates.retire, n, "forgotten", now_ms) is None:
        raise unknown(n)
    return show(store, n)


def unknown(n: int) -> UnknownSelector:
    return UnknownSelector(f"Unknown selector: {n}. `curtsy selectors list --all` lists the learned selectors.")


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    place = Place(**row["place"])
    names = ("schema", "schema_hash", "host", "template", "state", "why", "examples", "tested", "found", "used")
    return {name: row[name] for name in names} | {
        "id": str(row["n"]),
        "url_shape": row["shape"],
        "field": row["leaf"],
        "selector": str(place),
        "css": place.path,
        "label": place.label,
        "position": None if place.at is None else place.at + 1,
        "of": place.of,
        "before": place.before,
        "after": place.after,
        "pages": row["pages"],
        "pages_read": row["asked"],
        "learned_ms": row["learned_ms"],
        "ended_ms": row["ended_ms"],
    }
