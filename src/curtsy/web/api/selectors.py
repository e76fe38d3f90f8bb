"""Learned selectors."""

from __future__ import annotations

from curtsy.core import clock
from curtsy.core.errors import UnknownSelector
from curtsy.records import learned_selectors
from curtsy.web.models.selectors import SelectorDetails, SelectorInfo, SelectorsQuery, selector_fields
from curtsy.web.paging import Page, decode_one, encode
from curtsy.web.problems import Problem
from curtsy.web.routing import Call, endpoint

_LARGEST = 2**63 - 1


@endpoint("GET", "/v1/selectors", scope="read")
def list_selectors(call: Call, query: SelectorsQuery) -> Page[SelectorInfo]:
    """List learned selectors in the order in which they were learned."""
    after = decode_one(query.cursor, int, 0)
    state = None if query.state == "all" else query.state
    found = learned_selectors.find(
        call.store, after, query.limit + 1, host=query.host, schema=query.schema_name, state=state
    )
    shown = [SelectorInfo.model_validate(selector_fields(one)) for one in found[: query.limit]]
    following = (int(found[query.limit - 1]["id"]),) if len(found) > query.limit else None
    return Page[SelectorInfo](items=shown, next=encode(following))


@endpoint("GET", "/v1/selectors/{id}", scope="read")
def selector(call: Call, id: str) -> SelectorDetails:
    """A learned selector, with pages that taught it."""
    return _answer(call, id, forget=False)


@endpoint("POST", "/v1/selectors/{id}/forget", scope="write")
def forget_selector(call: Call, id: str) -> SelectorDetails:
    """Retire a learned selector. Curtsy asks the model again; only values that are read from now on teach its field."""
    return _answer(call, id, forget=True)


def _answer(call: Call, id: str, *, forget: bool) -> SelectorDetails:
    n = int(id) if id.isascii() and id.isdigit() and len(id) < 20 else 0
    try:
        if not 0 < n <= _LARGEST:
            raise learned_selectors.unknown(n)
        if forget:
            found = learned_selectors.forget(call.store, n, clock.now_ms())
        else:
            found = learned_selectors.show(call.store, n)
    except UnknownSelector:
        detail = "There is no learned selector with this number. GET /v1/selectors?state=all lists them."
        raise Problem(404, "no-such-selector", detail) from None
    return SelectorDetails.model_validate(selector_fields(found))
