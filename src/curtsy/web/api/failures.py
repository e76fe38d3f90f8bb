"""Dead letters: listed, counted, and given another chance."""

from __future__ import annotations

from curtsy.control import replay
from curtsy.core import clock
from curtsy.store import crawls, listing
from curtsy.store.listing import Letter, LettersWanted
from curtsy.web.models.asking import moment_ms
from curtsy.web.models.failures import (
    AllFailuresQuery,
    DeadLetter,
    FailuresQuery,
    GroupsQuery,
    LetterGroup,
    LetterGroups,
    Replayed,
    ReplayRequest,
    letter_of,
)
from curtsy.web.paging import Page, decode, encode
from curtsy.web.problems import Problem
from curtsy.web.routing import Call, endpoint


@endpoint(
    "GET",
    "/v1/crawls/{id}/failures",
    scope="read",
    query=FailuresQuery,
    answers={200: Page[DeadLetter]},
    tags=("failures",),
)
def list_failures(call: Call, id: str) -> Page[DeadLetter]:
    """List the dead letters of a crawl, oldest first; those of hosts that are dead for it come last.

    An answer looks through a bounded number, so it may hold few items, or none, although `next` is not null.
    """
    return _listed(call, call.crawl(id).n)


@endpoint(
    "GET",
    "/v1/failures",
    scope="read",
    query=AllFailuresQuery,
    answers={200: Page[DeadLetter]},
    problems=(404,),
    tags=("failures",),
)
def list_all_failures(call: Call) -> Page[DeadLetter]:
    """List the dead letters of all crawls, oldest first."""
    query: AllFailuresQuery = call.query
    return _listed(call, None if query.crawl is None else call.crawl(query.crawl).n)


def _listed(call: Call, crawl: int | None) -> Page[DeadLetter]:
    query: FailuresQuery = call.query
    wanted = LettersWanted(
        crawl=crawl,
        host=_host(call, query.host),
        stage=query.stage,
        cause=query.cause,
        since_ms=moment_ms(query.since),
        replayed=query.replayed,
    )
    with call.store.read() as tx:
        found, following = listing.letters(tx, wanted, _position(query.cursor), query.limit)
        ids = crawls.ids(tx, {failure.crawl for failure in found})
    # What is being deleted may have lost its crawl's row meanwhile.
    items = [letter_of(failure, ids[failure.crawl]) for failure in found if failure.crawl in ids]
    return Page[DeadLetter](items=items, next=None if following is None else encode(*following))


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
    raise Problem(422, "invalid-cursor", "The cursor is not of this list. Begin without one.")


def _host(call: Call, host: str | None) -> str | None:
    return None if host is None else call.host(host)


@endpoint(
    "GET",
    "/v1/failures/groups",
    scope="read",
    query=GroupsQuery,
    answers={200: LetterGroups},
    problems=(404,),
    tags=("failures",),
)
def failure_groups(call: Call) -> LetterGroups:
    """Count the dead letters that can be replayed, by cause, host or stage."""
    query: GroupsQuery = call.query
    wanted = LettersWanted(
        crawl=None if query.crawl is None else call.crawl(query.crawl).n,
        host=_host(call, query.host),
        stage=query.stage,
        cause=query.cause,
        since_ms=moment_ms(query.since),
    )
    with call.store.read() as tx:
        found = listing.groups(tx, set(query.by.split(",")), wanted)
    return LetterGroups(
        groups=[LetterGroup(cause=g.cause, host=g.host, stage=g.stage, dead_letters=g.letters) for g in found]
    )


@endpoint(
    "POST",
    "/v1/failures/replay",
    scope="write",
    body=ReplayRequest,
    answers={200: Replayed},
    problems=(404,),
    tags=("failures",),
)
def replay_failures(call: Call) -> Replayed:
    """Try dead letters again, from the stage that failed; their history is kept.

    Workers take them up at once. A crawl that had finished runs again; one that was cancelled does not.
    """
    wish: ReplayRequest = call.body
    which = replay.Filter(
        crawl=None if wish.crawl is None else call.crawl(wish.crawl).n,
        host=_host(call, wish.host),
        stage=wish.stage,
        cause=wish.cause or wish.error,
        since_ms=moment_ms(wish.since),
        limit=wish.limit,
        ids=tuple(wish.ids or ()),
    )
    done = replay.replay(call.store, which, clock.now_ms(), dry_run=wish.dry_run)
    if done.queues and (services := call.services) is not None:
        call.wait(replay.put_back_replayed(services, done))
    return Replayed(
        dead_letters=done.dead_letters,
        crawls=list(done.crawls),
        of_cancelled_crawls=done.of_cancelled_crawls,
        dry_run=wish.dry_run,
    )
