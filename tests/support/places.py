"""A stack with something on every page, and the addresses of all pages."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from stack import Stack
from waiting import wait_for

from curtsy.store import records, sources, templates
from curtsy.store.engine import Store
from curtsy.store.template_rows import Kind, NewSelector, Outcome, Reading

HOSTS = ("garden", "harbour", "orchard", "slow", "moody", "evil")


@dataclass(frozen=True, slots=True, kw_only=True)
class Furnished:
    """What was put into a stack."""

    stack: Stack
    #: a crawl that has ended, with pages, records and dead letters
    crawl: str
    #: a page of the site that means no good
    page: str
    letter: str
    #: a redirect or an error
    response: str
    schedule: str
    #: a record with a value that is withheld, and one of the site that means no good
    doubtful: str
    evil: str
    #: a learned selector
    selector: str


def furnish(stack: Stack, hosts: tuple[str, ...] = HOSTS, **wishes: object) -> Furnished:
    """One crawl to its end, a schedule, and whatever comes of them."""
    client = stack.client
    given = {"scope": "any", "schema": "organization", "rubric": "esg", **wishes}
    id = client.submit(given, [f"http://{host}.small.test/" for host in hosts])
    stack.until(id, "finished")
    made = client.post(
        "/v1/schedules",
        {"name": "Garden <every> morning", "cron": "0 6 * * mon-fri", "seeds": ["http://garden.small.test/"]},
    )
    evil = client.get(f"/v1/crawls/{id}/pages?host=evil.small.test")["items"]
    letters = wait_for(lambda: client.get(f"/v1/crawls/{id}/failures")["items"])
    held = wait_for(lambda: client.get(f"/v1/reviews?crawl={id}")["items"])
    doubtful = put_doubtful(stack, id)
    return Furnished(
        stack=stack,
        crawl=id,
        page=evil[0]["id"],
        letter=letters[0]["id"],
        response=next(filter(None, (client.get(f"/v1/failures/{one['id']}")["response"] for one in letters))),
        schedule=made["id"],
        doubtful=doubtful[0],
        evil=next(one["id"] for one in held if "evil" in one["url"]),
        selector=put_selector(stack, evil[0]["id"]),
    )


def put_selector(stack: Stack, page: str) -> str:
    """A learned selector, with names that mean no good."""
    evil = "<script>window.__evil = 1</script>"
    with Store.open(stack.store_url) as store:
        kind = Kind("h", f"Thing {evil}", "evil.small.test", "/*", "k", ["k"])
        n = store.run(templates.find_or_create, kind, lambda rows: None, 1)
        assert n is not None
        crawl, _, fp = page.partition("-")
        store.run(templates.note_read, n, Reading(int(crawl), fp, {"x": ["/name"]}, (), 2), Outcome())
        place = {"path": "main > p.price", "label": evil, "before": evil}
        store.run(templates.learn, n, 0, [NewSelector("/name", place, 3, 30, 29)], 9, 3)
        with store.read() as tx:
            return str(templates.active(tx, [n])[0].n)


def put_doubtful(stack: Stack, crawl: str, n: int = 3) -> list[str]:
    """Records with a value that somebody made up: a model that is no fake would not do so when it is asked to."""
    published = wait_for(lambda: stack.client.get(f"/v1/crawls/{crawl}/records")["items"])
    claimed = {
        "path": "/founded_year", "value": 1887, "rung": "llm", "verdict": "unsupported", "evidence": [],
        "note": "quote_not_found", "claimed_quote": "founded in 1887 by two sisters",
    }  # fmt: skip
    made: list[str] = []
    with Store.open(stack.store_url) as store:
        for ordinal in range(1, n + 1):
            with store.read() as tx:
                known = records.get(tx, int(published[ordinal % len(published)]["id"]))
                cited = sources.of(tx, known.n) if known is not None else []
            assert known is not None
            confidence = {**known.confidence, "low": True, "share": 0.8, "reasons": ["unsupported"]}
            held = replace(
                known, n=0, ordinal=ordinal, status="held", withheld=(claimed,), confidence=confidence,
                low_confidence=True, fields=tuple(one for one in known.fields if one["path"] != claimed["path"]),
                data={name: value for name, value in known.data.items() if name != "founded_year"},
            )  # fmt: skip
            added = store.run(records.add, held, cited)
            assert added is not None
            made.append(str(added.n))
    return made


def put_contradicted(stack: Stack, crawl: str) -> str:
    """A published record without its founding year, for which two pages state different years."""
    published = wait_for(lambda: stack.client.get(f"/v1/crawls/{crawl}/records")["items"])
    with Store.open(stack.store_url) as store:
        with store.read() as tx:
            known = records.get(tx, int(published[0]["id"]))
            cited = sources.of(tx, known.n) if known is not None else []
        assert known is not None
        name = next(one for one in known.fields if one["path"] == "/name")
        withheld = tuple(
            {
                **name,
                "path": "/founded_year",
                "value": year,
                "verdict": "unsupported",
                "note": "contradicted",
                "evidence": name["evidence"][:1],
            }
            for year in (1887, 1901)
        )
        fields = tuple(one for one in known.fields if one["path"] != "/founded_year")
        data = {name: value for name, value in known.data.items() if name != "founded_year"}
        made = replace(
            known, n=0, ordinal=99, data=data, fields=fields, withheld=withheld, contradicted=("/founded_year",),
            confidence={**known.confidence, "reasons": ["contradicted"], "share": 0.8},
        )  # fmt: skip
        added = store.run(records.add, made, cited)
        assert added is not None
        return str(added.n)


def places(found: Furnished) -> dict[str, str]:
    """name -> path of every page."""
    crawl = f"/crawls/{found.crawl}"
    return {
        "overview": "/",
        "crawls": "/crawls",
        "new-schedule": "/new?seed=http%3A%2F%2Fharbour.small.test%2F&schedule=1",
        "new": "/new?seed=http%3A%2F%2Fgarden.small.test%2F",
        "crawl": crawl,
        "crawl-edit": f"{crawl}/edit",
        "crawl-delete": f"{crawl}/delete",
        "crawls-found": "/crawls?q=garden.small.test&runs=all",
        "clone": f"/new?clone={found.crawl}",
        "crawl-hosts": f"{crawl}/hosts",
        "crawl-pages": f"{crawl}/pages",
        "crawl-records": f"{crawl}/records",
        "crawl-failures": f"{crawl}/failures",
        "crawl-changes": f"{crawl}/changes",
        "crawl-export": f"{crawl}/export",
        "page": f"/pages/{found.page}",
        "response": f"/responses/{found.response}",
        "hosts": "/hosts",
        "host": "/hosts/garden.small.test",
        "host-failing": "/hosts/evil.small.test",
        "failures": "/failures",
        "failures-by-host": "/failures?by=host",
        "failure": f"/failures/{found.letter}",
        "review": "/review",
        "review-filtered": "/review?reason=unsupported&min_confidence=0.1",
        "review-record": f"/review/{found.doubtful}",
        "review-evil": f"/review/{found.evil}",
        "selectors": "/selectors",
        "selector": f"/selectors/{found.selector}",
        "schedules": "/schedules",
        "schedule": f"/schedules/{found.schedule}",
        "schedule-edit": f"/schedules/{found.schedule}/edit",
        "keys": "/keys",
        "audit": "/audit",
        "explain-nothing": "/explain",
        "explain": "/explain?url=http%3A%2F%2Fgarden.small.test%2Fprivate%2Fdiary",
        "workers": "/workers",
        "error": "/pages/1-00000000000000000000000000000000",
    }


def views_without_a_place(rules: list[str], paths: list[str]) -> list[str]:
    """Rules of pages that none of these paths belongs to: none may be forgotten by a test that walks all pages."""
    patterns = {rule: re.compile(re.sub(r"<\w+>", "[^/]+", rule)) for rule in rules}
    return [
        rule for rule, found in patterns.items() if not any(found.fullmatch(path.partition("?")[0]) for path in paths)
    ]
