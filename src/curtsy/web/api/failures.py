"""Dead letters: list, count, replay."""

from __future__ import annotations

from curtsy.control import replay
from curtsy.core import clock
from curtsy.store import crawls, dashboard_queries, listing, pages, responses
from curtsy.store.listing import Letter, LettersWanted
from curtsy.web.models.failures import (
    AllFailuresQuery,
    DeadLetter,
    DeadLetterDetails,
    FailureFilter,
    FailuresQuery,
    GroupsQuery,
    LetterGroup,
    LetterGroups,
    Replayed,
    ReplayRequest,
    attempt_of,
    letter_of,
)  # fmt: skip
from curtsy.web.models.fields import fill, since_to_ms
from curtsy.web.paging import Page, decode, encode, invalid_cursor
from curtsy.web.problems import Problem
from curtsy.web.routing import Call, endpoint

#: requests that are shown of a dead letter
_MOST_ATTEMPTS = 50


@endpoint("GET", "/v1/crawls/{id}/failures", scope="read")
def list_failures(call: Call, id: str, query: FailuresQuery) -> Page[DeadLetter]:
    """List the dead letters of a crawl, oldest first; those of hosts that are dead for the crawl come last.

    One request examines a limited number of rows, so `items` may be short or empty although `next` is not null.
    """
    return _list(call, query, call.crawl(id).n)


@endpoint("GET", "/v1/failures", scope="read", problems=(404,))
def list_all_failures(call: Call, query: AllFailuresQuery) -> Page[DeadLetter]:
    """List the dead letters of all crawls, oldest first."""
    return _list(call, query, call.crawl_n(query.crawl))


def _list(call: Call, query: FailuresQuery, crawl: int | None) -> Page[DeadLetter]:
    wanted = _wanted(call, query, crawl, replayed=query.replayed)
    with call.store.read() as tx:
        found, following = listing.letters(tx, wanted, _position(query.cursor), query.limit)
        ids = crawls.ids(tx, {failure.crawl for failure in found})
    # A deletion may have removed the row of a crawl meanwhile.
    items = [letter_of(failure, ids[failure.crawl]) for failure in found if failure.crawl in ids]
    return Page[DeadLetter](items=items, next=encode(following))


def _wanted(call: Call, query: FailureFilter, crawl: int | None, *, replayed: bool = False) -> LettersWanted:
    return LettersWanted(
        crawl=crawl,
        host=_host(call, query),
        stage=query.stage,
        cause=query.cause,
        since_ms=since_to_ms(query.since),
        replayed=replayed,
    )


def _host(call: Call, query: FailureFilter) -> str | None:
    return None if query.host is None else call.host(query.host)


def _position(cursor: str | None) -> Letter | None:
    found = decode(cursor, str, int, str, int)
    if found is None:
        return None
    kind, first, second, third = found
    fits = max(abs(first), abs(third)) < 1 << 62 and "\0" not in second
    if kind == "d" and fits:
        return kind, first, second, third
    if kind == "f" and fits and second.isascii() and second.isdigit() and len(second) < 19:
        return kind, first, second, third
    raise invalid_cursor()


@endpoint("GET", "/v1/failures/groups", scope="read", problems=(404,))
def failure_groups(call: Call, query: GroupsQuery) -> LetterGroups:
    """Count the dead letters that can be replayed, by cause, host or stage."""
    wanted = _wanted(call, query, call.crawl_n(query.crawl))
    with call.store.read() as tx:
        found = listing.groups(tx, set(query.by.split(",")), wanted)
    return LetterGroups(groups=[fill(LetterGroup, group, dead_letters=group.letters) for group in found])


@endpoint("GET", "/v1/failures/{id}", scope="read")
def failure(call: Call, id: str) -> DeadLetterDetails:
    """A dead letter with all attempts that the request log still has, and its stored response if there is one."""
    with call.store.read() as tx:
        found = dashboard_queries.letter(tx, id) if id.isascii() and id.isprintable() and len(id) <= 100 else None
        crawl = None if found is None else crawls.ids(tx, [found.crawl]).get(found.crawl)
        if found is None or crawl is None:
            raise Problem(404, "no-such-failure", "There is no dead letter with this id. It may have been deleted.")
        sent = dashboard_queries.requests_of_url(tx, found.host, found.url, found.fp, _MOST_ATTEMPTS)
        page = pages.get(tx, found.crawl, found.fp)
        kept = responses.stored(tx, [one.fence for one in sent])
        last = responses.newest(tx, found.fp, found.crawl)
    attempts = [attempt_of(one, is_stored=one.fence in kept) for one in reversed(sent) if one.crawl == found.crawl]
    return DeadLetterDetails(
        **letter_of(found, crawl).model_dump(), requests=attempts,
        page=None if page is None or page.body is None else page.id, response=None if last is None else last.id,
    )  # fmt: skip


@endpoint("POST", "/v1/failures/replay", scope="write", problems=(404,))
def replay_failures(call: Call, body: ReplayRequest) -> Replayed:
    """Retry dead letters from the stage that failed; their history is kept.

    Workers start at once. A finished crawl runs again; a canceled one does not.
    """
    which = replay.Filter(
        crawl=call.crawl_n(body.crawl),
        host=_host(call, body),
        stage=body.stage,
        cause=body.cause or body.error,
        since_ms=since_to_ms(body.since),
        limit=body.limit,
        ids=tuple(body.ids or ()),
    )
    done = replay.replay(call.store, which, clock.now_ms(), dry_run=body.dry_run)
    if done.queues and (services := call.services) is not None:
        call.wait(replay.put_back_replayed(services, done))
    return fill(Replayed, done, dry_run=body.dry_run)
