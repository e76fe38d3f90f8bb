"""A method for every endpoint. Made from the OpenAPI document by `make client`: do not edit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, Literal, cast

from curtsy.client import types
from curtsy.client.transport import Asked, Event


class Calls(Asked):
    """Each returns when the answer is there."""

    def openapi_document(self) -> Any:
        """This API as an OpenAPI 3.1 document."""
        return cast("Any", self._call("GET", "/openapi.json"))

    def docs(self) -> str:
        """This API on one page. It needs no scripts and nothing from elsewhere."""
        return cast("str", self._call("GET", "/docs", kind="text"))

    def submit(
        self,
        *,
        seeds: list[str],
        idempotency_key: str | None = None,
        lane: Literal["high", "batch"] | None = None,
        scope: Literal["host", "domain", "any"] | None = None,
        include: list[str] | None = None,
        exclude: list[str] | None = None,
        max_pages: int | None = None,
        max_depth: int | None = None,
        delay_s: float | None = None,
        per_host: int | None = None,
        sitemaps: bool | None = None,
        cookies: bool | None = None,
        render: Literal["never", "auto", "always"] | None = None,
        schema: str | dict[str, Any] | None = None,
        rubric: str | None = None,
        llm: Literal["none", "local", "endpoint"] | None = None,
        webhook: str | None = None,
        webhook_secret: str | None = None,
        proxy_pool: str | None = None,
    ) -> types.Accepted:
        """Make a crawl. It is stored before the answer; workers take it up at once. Seeds that cannot be crawled are
        refused: the problem names the first 20. For very many seeds send NDJSON, which is stored while it
        arrives: an upload that breaks off without an Idempotency-Key is cancelled, one with a key can be sent
        again within an hour.
        """
        return cast(
            "types.Accepted",
            self._call(
                "POST",
                "/v1/crawls",
                body={
                    "lane": lane,
                    "scope": scope,
                    "include": include,
                    "exclude": exclude,
                    "max_pages": max_pages,
                    "max_depth": max_depth,
                    "delay_s": delay_s,
                    "per_host": per_host,
                    "sitemaps": sitemaps,
                    "cookies": cookies,
                    "render": render,
                    "schema": schema,
                    "rubric": rubric,
                    "llm": llm,
                    "webhook": webhook,
                    "webhook_secret": webhook_secret,
                    "proxy_pool": proxy_pool,
                    "seeds": seeds,
                },
                headers={"Idempotency-Key": idempotency_key},
                accepted=(202,),
            ),
        )

    def list_crawls(
        self,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        state: Literal["loading", "running", "paused", "extracting", "finished", "cancelled", "deleting"] | None = None,
    ) -> types.PageOfCrawlSummary:
        """List crawls, newest first."""
        return cast(
            "types.PageOfCrawlSummary",
            self._call("GET", "/v1/crawls", query={"cursor": cursor, "limit": limit, "state": state}),
        )

    def crawl(self, id: str) -> types.CrawlStatus:
        """How far a crawl is: state, counts, rate, estimated end. The id may be its beginning, or `last`."""
        return cast("types.CrawlStatus", self._call("GET", f"/v1/crawls/{self._word(id)}"))

    def delete_crawl(self, id: str) -> types.Deleting:
        """Delete a crawl with all its pages, bodies, records, dead letters and requests. One that is at work ends
        within 2 s. It is `deleting` until everything is gone, which may take a while. A body that pages of other
        crawls refer to is kept for them.
        """
        return cast("types.Deleting", self._call("DELETE", f"/v1/crawls/{self._word(id)}", accepted=(202,)))

    def pause(self, id: str) -> types.CrawlStatus:
        """Stop asking for pages of a crawl: no request of it leaves later than 2 s from now."""
        return cast("types.CrawlStatus", self._call("POST", f"/v1/crawls/{self._word(id)}/pause"))

    def resume(self, id: str) -> types.CrawlStatus:
        """Let a paused crawl go on."""
        return cast("types.CrawlStatus", self._call("POST", f"/v1/crawls/{self._word(id)}/resume"))

    def cancel(self, id: str) -> types.CrawlStatus:
        """End a crawl within 2 s, for good. What was fetched stays; open URLs count as skipped."""
        return cast("types.CrawlStatus", self._call("POST", f"/v1/crawls/{self._word(id)}/cancel"))

    def delete_pages(
        self, *, url: str | None = None, host: str | None = None, crawl: str | None = None
    ) -> types.Deleting:
        """Delete the pages of a URL or of a host, with their bodies and records, in one crawl or in all. A body that
        other pages refer to is kept for them. The crawl remembers the URL as done, and does not fetch it again.
        """
        return cast(
            "types.Deleting",
            self._call("DELETE", "/v1/pages", query={"url": url, "host": host, "crawl": crawl}, accepted=(202,)),
        )

    def list_deletions(self) -> types.PendingDeletions:
        """List what is being deleted."""
        return cast("types.PendingDeletions", self._call("GET", "/v1/deletions"))

    def events(self, id: str, *, last_event_id: str | None = None) -> Iterator[Event]:
        """Follow a crawl (server-sent events). An event comes when counts or state have changed, at most once a
        second; the stream ends with the crawl, and after 5 minutes: ask again with Last-Event-ID. Where too many
        follow already (503), ask `GET /v1/crawls/{id}` instead.
        """
        return self._events("GET", f"/v1/crawls/{self._word(id)}/events", headers={"Last-Event-ID": last_event_id})

    def list_hosts(
        self, *, cursor: str | None = None, limit: int | None = None, notable: bool | None = None
    ) -> types.PageOfHostSummary:
        """List hosts by name."""
        return cast(
            "types.PageOfHostSummary",
            self._call("GET", "/v1/hosts", query={"cursor": cursor, "limit": limit, "notable": notable}),
        )

    def host(self, host: str) -> types.HostStatus:
        """When a host may be asked and why not now, its delay and where that comes from, failures, robots.txt."""
        return cast("types.HostStatus", self._call("GET", f"/v1/hosts/{self._word(host)}"))

    def block(self, host: str, *, seconds: float) -> types.HostStatus:
        """Leave a host alone for some time, in every crawl. Its URLs wait."""
        return cast(
            "types.HostStatus", self._call("POST", f"/v1/hosts/{self._word(host)}/block", body={"seconds": seconds})
        )

    def unblock(self, host: str) -> types.HostStatus:
        """End the wait that a host asked for, that its failures brought, or that `block` set: it is asked a delay
        later.
        """
        return cast("types.HostStatus", self._call("POST", f"/v1/hosts/{self._word(host)}/unblock"))

    def delay(self, host: str, *, delay_s: float | None = None, per_host: int | None = None) -> types.HostStatus:
        """Set a host's own delay. Its robots.txt and the crawls may ask for more care, never for less."""
        return cast(
            "types.HostStatus",
            self._call("POST", f"/v1/hosts/{self._word(host)}/delay", body={"delay_s": delay_s, "per_host": per_host}),
        )

    def deny(self, host: str) -> types.HostStatus:
        """Put a host on the deny list (opt-out): nobody asks it later than 2 s from now; its URLs are skipped
        `denied`.
        """
        return cast("types.HostStatus", self._call("POST", f"/v1/hosts/{self._word(host)}/deny"))

    def allow(self, host: str) -> types.HostStatus:
        """Take a host off the deny list. URLs that were skipped stay so."""
        return cast("types.HostStatus", self._call("POST", f"/v1/hosts/{self._word(host)}/allow"))

    def explain(
        self, *, url: str | None = None, host: str | None = None, crawl: str | None = None
    ) -> types.Explanation:
        """Where a URL or a host is and why it is not done. Queued behind how many, blocked until when and by whom,
        the line of robots.txt, the budget, the worker that has it, the dead letter that came of it.
        """
        return cast(
            "types.Explanation", self._call("GET", "/v1/explain", query={"url": url, "host": host, "crawl": crawl})
        )

    def list_failures(
        self,
        id: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        host: str | None = None,
        stage: str | None = None,
        cause: str | None = None,
        since: str | None = None,
        replayed: bool | None = None,
    ) -> types.PageOfDeadLetter:
        """List the dead letters of a crawl, oldest first; those of hosts that are dead for it come last. An answer
        looks through a bounded number, so it may hold few items, or none, although `next` is not null.
        """
        return cast(
            "types.PageOfDeadLetter",
            self._call(
                "GET",
                f"/v1/crawls/{self._word(id)}/failures",
                query={
                    "cursor": cursor,
                    "limit": limit,
                    "host": host,
                    "stage": stage,
                    "cause": cause,
                    "since": since,
                    "replayed": replayed,
                },
            ),
        )

    def list_all_failures(
        self,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        host: str | None = None,
        stage: str | None = None,
        cause: str | None = None,
        since: str | None = None,
        replayed: bool | None = None,
        crawl: str | None = None,
    ) -> types.PageOfDeadLetter:
        """List the dead letters of all crawls, oldest first."""
        return cast(
            "types.PageOfDeadLetter",
            self._call(
                "GET",
                "/v1/failures",
                query={
                    "cursor": cursor,
                    "limit": limit,
                    "host": host,
                    "stage": stage,
                    "cause": cause,
                    "since": since,
                    "replayed": replayed,
                    "crawl": crawl,
                },
            ),
        )

    def failure_groups(
        self,
        *,
        by: str | None = None,
        crawl: str | None = None,
        host: str | None = None,
        stage: str | None = None,
        cause: str | None = None,
        since: str | None = None,
    ) -> types.LetterGroups:
        """Count the dead letters that can be replayed, by cause, host or stage."""
        return cast(
            "types.LetterGroups",
            self._call(
                "GET",
                "/v1/failures/groups",
                query={"by": by, "crawl": crawl, "host": host, "stage": stage, "cause": cause, "since": since},
            ),
        )

    def replay_failures(
        self,
        *,
        crawl: str | None = None,
        host: str | None = None,
        stage: str | None = None,
        cause: str | None = None,
        error: str | None = None,
        since: str | None = None,
        ids: list[str] | None = None,
        limit: int | None = None,
        dry_run: bool | None = None,
    ) -> types.Replayed:
        """Try dead letters again, from the stage that failed; their history is kept. Workers take them up at once. A
        crawl that had finished runs again; one that was cancelled does not.
        """
        return cast(
            "types.Replayed",
            self._call(
                "POST",
                "/v1/failures/replay",
                body={
                    "crawl": crawl,
                    "host": host,
                    "stage": stage,
                    "cause": cause,
                    "error": error,
                    "since": since,
                    "ids": ids,
                    "limit": limit,
                    "dry_run": dry_run,
                },
            ),
        )

    def healthz(self) -> types.Alive:
        """Whether the process lives. It asks no other part."""
        return cast("types.Alive", self._call("GET", "/healthz"))

    def readyz(self) -> types.Ready:
        """Whether the store, the frontier and the broker answer, each within a second."""
        return cast(
            "types.Ready",
            self._call(
                "GET",
                "/readyz",
                accepted=(
                    200,
                    503,
                ),
            ),
        )

    def prometheus(self) -> str:
        """Counts of the whole fleet for Prometheus. Gauges of a part that is away are left out."""
        return cast("str", self._call("GET", "/metrics", kind="text"))

    def list_pages(
        self,
        id: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        status: int | None = None,
        host: str | None = None,
        since: str | None = None,
        url: str | None = None,
    ) -> types.PageOfPageOf:
        """List the pages of a crawl, in the order in which they were stored. With `since` and neither `host`, `url`
        nor an unusual `status`: in the order in which they were fetched. An answer looks through a bounded number
        of pages, so it may hold few items, or none, although `next` is not null.
        """
        return cast(
            "types.PageOfPageOf",
            self._call(
                "GET",
                f"/v1/crawls/{self._word(id)}/pages",
                query={"cursor": cursor, "limit": limit, "status": status, "host": host, "since": since, "url": url},
            ),
        )

    def page(self, id: str) -> types.PageOf:
        """What is known of a page."""
        return cast("types.PageOf", self._call("GET", f"/v1/pages/{self._word(id)}"))

    def content(self, id: str) -> bytes:
        """The stored body of a page, as an attachment: a browser does not show it as part of this site."""
        return cast("bytes", self._call("GET", f"/v1/pages/{self._word(id)}/content", kind="bytes"))

    def crawl_records(
        self,
        id: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        low_confidence: bool | None = None,
        status: Literal["published", "held", "rejected", "superseded"] | None = None,
        every_schema: bool | None = None,
    ) -> types.PageOfRecordInfo:
        """The published records of a crawl that names a schema, in the order they were stored. Records that nobody
        may rely on yet are `held`: GET /v1/reviews lists them.
        """
        return cast(
            "types.PageOfRecordInfo",
            self._call(
                "GET",
                f"/v1/crawls/{self._word(id)}/records",
                query={
                    "cursor": cursor,
                    "limit": limit,
                    "low_confidence": low_confidence,
                    "status": status,
                    "every_schema": every_schema,
                },
            ),
        )

    def crawl_changes(
        self,
        id: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        against: str | None = None,
        kind: Literal["new", "changed", "unchanged", "gone", "moved", "unread"] | None = None,
    ) -> types.Changes:
        """What changed since another crawl: the run before it in its schedule, or the one named by `against`. `gone`
        is said of a page that was there and is 404 or 410 now, or that no link leads to any more; `unread` of one
        that this crawl did not get to read.
        """
        return cast(
            "types.Changes",
            self._call(
                "GET",
                f"/v1/crawls/{self._word(id)}/changes",
                query={"cursor": cursor, "limit": limit, "against": against, "kind": kind},
            ),
        )

    def list_reviews(
        self,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        crawl: str | None = None,
        schema: str | None = None,
    ) -> types.PageOfReviewItem:
        """List the records that wait for a person, oldest first, with the values that are withheld of them. With
        `schema` an answer may hold few items, or none, although `next` is not null.
        """
        return cast(
            "types.PageOfReviewItem",
            self._call(
                "GET", "/v1/reviews", query={"cursor": cursor, "limit": limit, "crawl": crawl, "schema": schema}
            ),
        )

    def record(self, id: str) -> types.RecordInfo:
        """A record with its evidence. One that is not published is shown to the scope `write` only."""
        return cast("types.RecordInfo", self._call("GET", f"/v1/records/{self._word(id)}"))

    def record_review(self, id: str) -> types.DossierInfo:
        """All that a reviewer needs: the record, what is withheld, the texts that evidence stands in, every
        decision.
        """
        return cast("types.DossierInfo", self._call("GET", f"/v1/records/{self._word(id)}/review"))

    def review(
        self,
        id: str,
        *,
        decision: Literal["approve", "reject", "correct"],
        by: str | None = None,
        note: str | None = None,
        correction: dict[str, Any] | None = None,
        golden: bool | None = None,
    ) -> types.DossierInfo:
        """Approve, reject or correct a record; who and when is kept with the decision. An approved or corrected
        record is published and never replaced: a new extraction becomes a version beside it.
        """
        return cast(
            "types.DossierInfo",
            self._call(
                "POST",
                f"/v1/records/{self._word(id)}/review",
                body={"decision": decision, "by": by, "note": note, "correction": correction, "golden": golden},
            ),
        )

    def make_schedule(
        self,
        *,
        name: str,
        cron: str,
        seeds: list[str],
        zone: str | None = None,
        crawl: types.CrawlRequest | None = None,
        overlap: Literal["skip", "queue"] | None = None,
        keep: int | None = None,
    ) -> types.ScheduleInfo:
        """Make a schedule: a crawl that is run again and again. Beat fires it; each planned time has one run. What
        cannot be crawled is refused before anything is stored.
        """
        return cast(
            "types.ScheduleInfo",
            self._call(
                "POST",
                "/v1/schedules",
                body={
                    "name": name,
                    "cron": cron,
                    "zone": zone,
                    "seeds": seeds,
                    "crawl": crawl,
                    "overlap": overlap,
                    "keep": keep,
                },
                accepted=(201,),
            ),
        )

    def list_schedules(self, *, cursor: str | None = None, limit: int | None = None) -> types.PageOfScheduleInfo:
        """List schedules, in the order they were made."""
        return cast(
            "types.PageOfScheduleInfo", self._call("GET", "/v1/schedules", query={"cursor": cursor, "limit": limit})
        )

    def schedule(self, id: str) -> types.ScheduleInfo:
        """One schedule, by its name, its id, or the beginning of its id."""
        return cast("types.ScheduleInfo", self._call("GET", f"/v1/schedules/{self._word(id)}"))

    def remove_schedule(self, id: str) -> None:
        """Remove a schedule and the list of its runs. Its crawls stay."""
        return cast(None, self._call("DELETE", f"/v1/schedules/{self._word(id)}", kind="nothing", accepted=(204,)))

    def pause_schedule(self, id: str) -> types.ScheduleInfo:
        """Fire it no more until it is resumed. A crawl that is under way goes on."""
        return cast("types.ScheduleInfo", self._call("POST", f"/v1/schedules/{self._word(id)}/pause"))

    def resume_schedule(self, id: str) -> types.ScheduleInfo:
        """Let a paused schedule go on from now; what it missed is not made up for."""
        return cast("types.ScheduleInfo", self._call("POST", f"/v1/schedules/{self._word(id)}/resume"))

    def schedule_runs(self, id: str, *, cursor: str | None = None, limit: int | None = None) -> types.PageOfRunInfo:
        """The runs of a schedule, newest first, with the ids of their crawls."""
        return cast(
            "types.PageOfRunInfo",
            self._call("GET", f"/v1/schedules/{self._word(id)}/runs", query={"cursor": cursor, "limit": limit}),
        )


class AsyncCalls(Asked):
    """Each is to be awaited."""

    async def openapi_document(self) -> Any:
        """This API as an OpenAPI 3.1 document."""
        return cast("Any", await self._call_async("GET", "/openapi.json"))

    async def docs(self) -> str:
        """This API on one page. It needs no scripts and nothing from elsewhere."""
        return cast("str", await self._call_async("GET", "/docs", kind="text"))

    async def submit(
        self,
        *,
        seeds: list[str],
        idempotency_key: str | None = None,
        lane: Literal["high", "batch"] | None = None,
        scope: Literal["host", "domain", "any"] | None = None,
        include: list[str] | None = None,
        exclude: list[str] | None = None,
        max_pages: int | None = None,
        max_depth: int | None = None,
        delay_s: float | None = None,
        per_host: int | None = None,
        sitemaps: bool | None = None,
        cookies: bool | None = None,
        render: Literal["never", "auto", "always"] | None = None,
        schema: str | dict[str, Any] | None = None,
        rubric: str | None = None,
        llm: Literal["none", "local", "endpoint"] | None = None,
        webhook: str | None = None,
        webhook_secret: str | None = None,
        proxy_pool: str | None = None,
    ) -> types.Accepted:
        """Make a crawl. It is stored before the answer; workers take it up at once. Seeds that cannot be crawled are
        refused: the problem names the first 20. For very many seeds send NDJSON, which is stored while it
        arrives: an upload that breaks off without an Idempotency-Key is cancelled, one with a key can be sent
        again within an hour.
        """
        return cast(
            "types.Accepted",
            await self._call_async(
                "POST",
                "/v1/crawls",
                body={
                    "lane": lane,
                    "scope": scope,
                    "include": include,
                    "exclude": exclude,
                    "max_pages": max_pages,
                    "max_depth": max_depth,
                    "delay_s": delay_s,
                    "per_host": per_host,
                    "sitemaps": sitemaps,
                    "cookies": cookies,
                    "render": render,
                    "schema": schema,
                    "rubric": rubric,
                    "llm": llm,
                    "webhook": webhook,
                    "webhook_secret": webhook_secret,
                    "proxy_pool": proxy_pool,
                    "seeds": seeds,
                },
                headers={"Idempotency-Key": idempotency_key},
                accepted=(202,),
            ),
        )

    async def list_crawls(
        self,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        state: Literal["loading", "running", "paused", "extracting", "finished", "cancelled", "deleting"] | None = None,
    ) -> types.PageOfCrawlSummary:
        """List crawls, newest first."""
        return cast(
            "types.PageOfCrawlSummary",
            await self._call_async("GET", "/v1/crawls", query={"cursor": cursor, "limit": limit, "state": state}),
        )

    async def crawl(self, id: str) -> types.CrawlStatus:
        """How far a crawl is: state, counts, rate, estimated end. The id may be its beginning, or `last`."""
        return cast("types.CrawlStatus", await self._call_async("GET", f"/v1/crawls/{self._word(id)}"))

    async def delete_crawl(self, id: str) -> types.Deleting:
        """Delete a crawl with all its pages, bodies, records, dead letters and requests. One that is at work ends
        within 2 s. It is `deleting` until everything is gone, which may take a while. A body that pages of other
        crawls refer to is kept for them.
        """
        return cast("types.Deleting", await self._call_async("DELETE", f"/v1/crawls/{self._word(id)}", accepted=(202,)))

    async def pause(self, id: str) -> types.CrawlStatus:
        """Stop asking for pages of a crawl: no request of it leaves later than 2 s from now."""
        return cast("types.CrawlStatus", await self._call_async("POST", f"/v1/crawls/{self._word(id)}/pause"))

    async def resume(self, id: str) -> types.CrawlStatus:
        """Let a paused crawl go on."""
        return cast("types.CrawlStatus", await self._call_async("POST", f"/v1/crawls/{self._word(id)}/resume"))

    async def cancel(self, id: str) -> types.CrawlStatus:
        """End a crawl within 2 s, for good. What was fetched stays; open URLs count as skipped."""
        return cast("types.CrawlStatus", await self._call_async("POST", f"/v1/crawls/{self._word(id)}/cancel"))

    async def delete_pages(
        self, *, url: str | None = None, host: str | None = None, crawl: str | None = None
    ) -> types.Deleting:
        """Delete the pages of a URL or of a host, with their bodies and records, in one crawl or in all. A body that
        other pages refer to is kept for them. The crawl remembers the URL as done, and does not fetch it again.
        """
        return cast(
            "types.Deleting",
            await self._call_async(
                "DELETE", "/v1/pages", query={"url": url, "host": host, "crawl": crawl}, accepted=(202,)
            ),
        )

    async def list_deletions(self) -> types.PendingDeletions:
        """List what is being deleted."""
        return cast("types.PendingDeletions", await self._call_async("GET", "/v1/deletions"))

    def events(self, id: str, *, last_event_id: str | None = None) -> AsyncIterator[Event]:
        """Follow a crawl (server-sent events). An event comes when counts or state have changed, at most once a
        second; the stream ends with the crawl, and after 5 minutes: ask again with Last-Event-ID. Where too many
        follow already (503), ask `GET /v1/crawls/{id}` instead.
        """
        return self._events_async(
            "GET", f"/v1/crawls/{self._word(id)}/events", headers={"Last-Event-ID": last_event_id}
        )

    async def list_hosts(
        self, *, cursor: str | None = None, limit: int | None = None, notable: bool | None = None
    ) -> types.PageOfHostSummary:
        """List hosts by name."""
        return cast(
            "types.PageOfHostSummary",
            await self._call_async("GET", "/v1/hosts", query={"cursor": cursor, "limit": limit, "notable": notable}),
        )

    async def host(self, host: str) -> types.HostStatus:
        """When a host may be asked and why not now, its delay and where that comes from, failures, robots.txt."""
        return cast("types.HostStatus", await self._call_async("GET", f"/v1/hosts/{self._word(host)}"))

    async def block(self, host: str, *, seconds: float) -> types.HostStatus:
        """Leave a host alone for some time, in every crawl. Its URLs wait."""
        return cast(
            "types.HostStatus",
            await self._call_async("POST", f"/v1/hosts/{self._word(host)}/block", body={"seconds": seconds}),
        )

    async def unblock(self, host: str) -> types.HostStatus:
        """End the wait that a host asked for, that its failures brought, or that `block` set: it is asked a delay
        later.
        """
        return cast("types.HostStatus", await self._call_async("POST", f"/v1/hosts/{self._word(host)}/unblock"))

    async def delay(self, host: str, *, delay_s: float | None = None, per_host: int | None = None) -> types.HostStatus:
        """Set a host's own delay. Its robots.txt and the crawls may ask for more care, never for less."""
        return cast(
            "types.HostStatus",
            await self._call_async(
                "POST", f"/v1/hosts/{self._word(host)}/delay", body={"delay_s": delay_s, "per_host": per_host}
            ),
        )

    async def deny(self, host: str) -> types.HostStatus:
        """Put a host on the deny list (opt-out): nobody asks it later than 2 s from now; its URLs are skipped
        `denied`.
        """
        return cast("types.HostStatus", await self._call_async("POST", f"/v1/hosts/{self._word(host)}/deny"))

    async def allow(self, host: str) -> types.HostStatus:
        """Take a host off the deny list. URLs that were skipped stay so."""
        return cast("types.HostStatus", await self._call_async("POST", f"/v1/hosts/{self._word(host)}/allow"))

    async def explain(
        self, *, url: str | None = None, host: str | None = None, crawl: str | None = None
    ) -> types.Explanation:
        """Where a URL or a host is and why it is not done. Queued behind how many, blocked until when and by whom,
        the line of robots.txt, the budget, the worker that has it, the dead letter that came of it.
        """
        return cast(
            "types.Explanation",
            await self._call_async("GET", "/v1/explain", query={"url": url, "host": host, "crawl": crawl}),
        )

    async def list_failures(
        self,
        id: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        host: str | None = None,
        stage: str | None = None,
        cause: str | None = None,
        since: str | None = None,
        replayed: bool | None = None,
    ) -> types.PageOfDeadLetter:
        """List the dead letters of a crawl, oldest first; those of hosts that are dead for it come last. An answer
        looks through a bounded number, so it may hold few items, or none, although `next` is not null.
        """
        return cast(
            "types.PageOfDeadLetter",
            await self._call_async(
                "GET",
                f"/v1/crawls/{self._word(id)}/failures",
                query={
                    "cursor": cursor,
                    "limit": limit,
                    "host": host,
                    "stage": stage,
                    "cause": cause,
                    "since": since,
                    "replayed": replayed,
                },
            ),
        )

    async def list_all_failures(
        self,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        host: str | None = None,
        stage: str | None = None,
        cause: str | None = None,
        since: str | None = None,
        replayed: bool | None = None,
        crawl: str | None = None,
    ) -> types.PageOfDeadLetter:
        """List the dead letters of all crawls, oldest first."""
        return cast(
            "types.PageOfDeadLetter",
            await self._call_async(
                "GET",
                "/v1/failures",
                query={
                    "cursor": cursor,
                    "limit": limit,
                    "host": host,
                    "stage": stage,
                    "cause": cause,
                    "since": since,
                    "replayed": replayed,
                    "crawl": crawl,
                },
            ),
        )

    async def failure_groups(
        self,
        *,
        by: str | None = None,
        crawl: str | None = None,
        host: str | None = None,
        stage: str | None = None,
        cause: str | None = None,
        since: str | None = None,
    ) -> types.LetterGroups:
        """Count the dead letters that can be replayed, by cause, host or stage."""
        return cast(
            "types.LetterGroups",
            await self._call_async(
                "GET",
                "/v1/failures/groups",
                query={"by": by, "crawl": crawl, "host": host, "stage": stage, "cause": cause, "since": since},
            ),
        )

    async def replay_failures(
        self,
        *,
        crawl: str | None = None,
        host: str | None = None,
        stage: str | None = None,
        cause: str | None = None,
        error: str | None = None,
        since: str | None = None,
        ids: list[str] | None = None,
        limit: int | None = None,
        dry_run: bool | None = None,
    ) -> types.Replayed:
        """Try dead letters again, from the stage that failed; their history is kept. Workers take them up at once. A
        crawl that had finished runs again; one that was cancelled does not.
        """
        return cast(
            "types.Replayed",
            await self._call_async(
                "POST",
                "/v1/failures/replay",
                body={
                    "crawl": crawl,
                    "host": host,
                    "stage": stage,
                    "cause": cause,
                    "error": error,
                    "since": since,
                    "ids": ids,
                    "limit": limit,
                    "dry_run": dry_run,
                },
            ),
        )

    async def healthz(self) -> types.Alive:
        """Whether the process lives. It asks no other part."""
        return cast("types.Alive", await self._call_async("GET", "/healthz"))

    async def readyz(self) -> types.Ready:
        """Whether the store, the frontier and the broker answer, each within a second."""
        return cast(
            "types.Ready",
            await self._call_async(
                "GET",
                "/readyz",
                accepted=(
                    200,
                    503,
                ),
            ),
        )

    async def prometheus(self) -> str:
        """Counts of the whole fleet for Prometheus. Gauges of a part that is away are left out."""
        return cast("str", await self._call_async("GET", "/metrics", kind="text"))

    async def list_pages(
        self,
        id: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        status: int | None = None,
        host: str | None = None,
        since: str | None = None,
        url: str | None = None,
    ) -> types.PageOfPageOf:
        """List the pages of a crawl, in the order in which they were stored. With `since` and neither `host`, `url`
        nor an unusual `status`: in the order in which they were fetched. An answer looks through a bounded number
        of pages, so it may hold few items, or none, although `next` is not null.
        """
        return cast(
            "types.PageOfPageOf",
            await self._call_async(
                "GET",
                f"/v1/crawls/{self._word(id)}/pages",
                query={"cursor": cursor, "limit": limit, "status": status, "host": host, "since": since, "url": url},
            ),
        )

    async def page(self, id: str) -> types.PageOf:
        """What is known of a page."""
        return cast("types.PageOf", await self._call_async("GET", f"/v1/pages/{self._word(id)}"))

    async def content(self, id: str) -> bytes:
        """The stored body of a page, as an attachment: a browser does not show it as part of this site."""
        return cast("bytes", await self._call_async("GET", f"/v1/pages/{self._word(id)}/content", kind="bytes"))

    async def crawl_records(
        self,
        id: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        low_confidence: bool | None = None,
        status: Literal["published", "held", "rejected", "superseded"] | None = None,
        every_schema: bool | None = None,
    ) -> types.PageOfRecordInfo:
        """The published records of a crawl that names a schema, in the order they were stored. Records that nobody
        may rely on yet are `held`: GET /v1/reviews lists them.
        """
        return cast(
            "types.PageOfRecordInfo",
            await self._call_async(
                "GET",
                f"/v1/crawls/{self._word(id)}/records",
                query={
                    "cursor": cursor,
                    "limit": limit,
                    "low_confidence": low_confidence,
                    "status": status,
                    "every_schema": every_schema,
                },
            ),
        )

    async def crawl_changes(
        self,
        id: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        against: str | None = None,
        kind: Literal["new", "changed", "unchanged", "gone", "moved", "unread"] | None = None,
    ) -> types.Changes:
        """What changed since another crawl: the run before it in its schedule, or the one named by `against`. `gone`
        is said of a page that was there and is 404 or 410 now, or that no link leads to any more; `unread` of one
        that this crawl did not get to read.
        """
        return cast(
            "types.Changes",
            await self._call_async(
                "GET",
                f"/v1/crawls/{self._word(id)}/changes",
                query={"cursor": cursor, "limit": limit, "against": against, "kind": kind},
            ),
        )

    async def list_reviews(
        self,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        crawl: str | None = None,
        schema: str | None = None,
    ) -> types.PageOfReviewItem:
        """List the records that wait for a person, oldest first, with the values that are withheld of them. With
        `schema` an answer may hold few items, or none, although `next` is not null.
        """
        return cast(
            "types.PageOfReviewItem",
            await self._call_async(
                "GET", "/v1/reviews", query={"cursor": cursor, "limit": limit, "crawl": crawl, "schema": schema}
            ),
        )

    async def record(self, id: str) -> types.RecordInfo:
        """A record with its evidence. One that is not published is shown to the scope `write` only."""
        return cast("types.RecordInfo", await self._call_async("GET", f"/v1/records/{self._word(id)}"))

    async def record_review(self, id: str) -> types.DossierInfo:
        """All that a reviewer needs: the record, what is withheld, the texts that evidence stands in, every
        decision.
        """
        return cast("types.DossierInfo", await self._call_async("GET", f"/v1/records/{self._word(id)}/review"))

    async def review(
        self,
        id: str,
        *,
        decision: Literal["approve", "reject", "correct"],
        by: str | None = None,
        note: str | None = None,
        correction: dict[str, Any] | None = None,
        golden: bool | None = None,
    ) -> types.DossierInfo:
        """Approve, reject or correct a record; who and when is kept with the decision. An approved or corrected
        record is published and never replaced: a new extraction becomes a version beside it.
        """
        return cast(
            "types.DossierInfo",
            await self._call_async(
                "POST",
                f"/v1/records/{self._word(id)}/review",
                body={"decision": decision, "by": by, "note": note, "correction": correction, "golden": golden},
            ),
        )

    async def make_schedule(
        self,
        *,
        name: str,
        cron: str,
        seeds: list[str],
        zone: str | None = None,
        crawl: types.CrawlRequest | None = None,
        overlap: Literal["skip", "queue"] | None = None,
        keep: int | None = None,
    ) -> types.ScheduleInfo:
        """Make a schedule: a crawl that is run again and again. Beat fires it; each planned time has one run. What
        cannot be crawled is refused before anything is stored.
        """
        return cast(
            "types.ScheduleInfo",
            await self._call_async(
                "POST",
                "/v1/schedules",
                body={
                    "name": name,
                    "cron": cron,
                    "zone": zone,
                    "seeds": seeds,
                    "crawl": crawl,
                    "overlap": overlap,
                    "keep": keep,
                },
                accepted=(201,),
            ),
        )

    async def list_schedules(self, *, cursor: str | None = None, limit: int | None = None) -> types.PageOfScheduleInfo:
        """List schedules, in the order they were made."""
        return cast(
            "types.PageOfScheduleInfo",
            await self._call_async("GET", "/v1/schedules", query={"cursor": cursor, "limit": limit}),
        )

    async def schedule(self, id: str) -> types.ScheduleInfo:
        """One schedule, by its name, its id, or the beginning of its id."""
        return cast("types.ScheduleInfo", await self._call_async("GET", f"/v1/schedules/{self._word(id)}"))

    async def remove_schedule(self, id: str) -> None:
        """Remove a schedule and the list of its runs. Its crawls stay."""
        return cast(
            None, await self._call_async("DELETE", f"/v1/schedules/{self._word(id)}", kind="nothing", accepted=(204,))
        )

    async def pause_schedule(self, id: str) -> types.ScheduleInfo:
        """Fire it no more until it is resumed. A crawl that is under way goes on."""
        return cast("types.ScheduleInfo", await self._call_async("POST", f"/v1/schedules/{self._word(id)}/pause"))

    async def resume_schedule(self, id: str) -> types.ScheduleInfo:
        """Let a paused schedule go on from now; what it missed is not made up for."""
        return cast("types.ScheduleInfo", await self._call_async("POST", f"/v1/schedules/{self._word(id)}/resume"))

    async def schedule_runs(
        self, id: str, *, cursor: str | None = None, limit: int | None = None
    ) -> types.PageOfRunInfo:
        """The runs of a schedule, newest first, with the ids of their crawls."""
        return cast(
            "types.PageOfRunInfo",
            await self._call_async(
                "GET", f"/v1/schedules/{self._word(id)}/runs", query={"cursor": cursor, "limit": limit}
            ),
        )
