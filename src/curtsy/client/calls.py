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
        """This API on one page, without scripts or external resources."""
        return cast("str", self._call("GET", "/docs", kind="text"))

    def submit(
        self,
        *,
        seeds: list[str],
        idempotency_key: str | None = None,
        lane: Literal["high", "batch", "slow"] | None = None,
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
        """Create a crawl. It is stored before the answer, and workers start it at once. Seeds that cannot be crawled
        are refused; the problem lists the first 20. Send very many seeds as NDJSON, which is stored while it
        arrives. An interrupted upload without an Idempotency-Key is cancelled; with a key it can be sent again
        within an hour.
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
        """Progress of a crawl: state, counts, rate, estimated end. The id may be its beginning, or `last`."""
        return cast("types.CrawlStatus", self._call("GET", f"/v1/crawls/{self._word(id)}"))

    def delete_crawl(self, id: str) -> types.Deleting:
        """Delete a crawl with all its pages, bodies, records, dead letters and requests. A running crawl ends within
        2 s. Its state is `deleting` until everything is gone, which may take a while. A body that pages of other
        crawls refer to is kept for them.
        """
        return cast("types.Deleting", self._call("DELETE", f"/v1/crawls/{self._word(id)}", accepted=(202,)))

    def pause(self, id: str) -> types.CrawlStatus:
        """Pause a crawl. It sends its last request within 2 s."""
        return cast("types.CrawlStatus", self._call("POST", f"/v1/crawls/{self._word(id)}/pause"))

    def resume(self, id: str) -> types.CrawlStatus:
        """Resume a paused crawl."""
        return cast("types.CrawlStatus", self._call("POST", f"/v1/crawls/{self._word(id)}/resume"))

    def cancel(self, id: str) -> types.CrawlStatus:
        """End a crawl within 2 s, permanently. Fetched pages stay; open URLs count as skipped."""
        return cast("types.CrawlStatus", self._call("POST", f"/v1/crawls/{self._word(id)}/cancel"))

    def events(self, id: str, *, last_event_id: str | None = None) -> Iterator[Event]:
        """Follow a crawl (server-sent events). The server sends an event when counts or state change, at most once a
        second. The stream ends with the crawl, and after 5 minutes: reconnect with Last-Event-ID. If too many
        clients are connected (503), poll `GET /v1/crawls/{id}`.
        """
        return self._events("GET", f"/v1/crawls/{self._word(id)}/events", headers={"Last-Event-ID": last_event_id})

    def delete_pages(
        self, *, url: str | None = None, host: str | None = None, crawl: str | None = None
    ) -> types.Deleting:
        """Delete the pages of a URL or of a host, with their bodies and records, in one crawl or in all. A body that
        other pages refer to is kept for them. The URL stays done in its crawl, which does not fetch it again.
        """
        return cast(
            "types.Deleting",
            self._call("DELETE", "/v1/pages", query={"url": url, "host": host, "crawl": crawl}, accepted=(202,)),
        )

    def list_deletions(self) -> types.PendingDeletions:
        """List the deletions in progress."""
        return cast("types.PendingDeletions", self._call("GET", "/v1/deletions"))

    def list_hosts(
        self, *, cursor: str | None = None, limit: int | None = None, notable: bool | None = None
    ) -> types.PageOfHostSummary:
        """List hosts by name."""
        return cast(
            "types.PageOfHostSummary",
            self._call("GET", "/v1/hosts", query={"cursor": cursor, "limit": limit, "notable": notable}),
        )

    def host(self, host: str) -> types.HostStatus:
        """When a host gets its next request and why not now, its delay and the source of it, failures, robots.txt."""
        return cast("types.HostStatus", self._call("GET", f"/v1/hosts/{self._word(host)}"))

    def block(self, host: str, *, seconds: float) -> types.HostStatus:
        """Send no requests to a host for some time, in every crawl. Its URLs wait."""
        return cast(
            "types.HostStatus", self._call("POST", f"/v1/hosts/{self._word(host)}/block", body={"seconds": seconds})
        )

    def unblock(self, host: str) -> types.HostStatus:
        """End a wait that the host, its failures or `block` caused. The next request follows a delay later."""
        return cast("types.HostStatus", self._call("POST", f"/v1/hosts/{self._word(host)}/unblock"))

    def delay(self, host: str, *, delay_s: float | None = None, per_host: int | None = None) -> types.HostStatus:
        """Set the operator's delay for a host. robots.txt and the crawls can only make it longer."""
        return cast(
            "types.HostStatus",
            self._call("POST", f"/v1/hosts/{self._word(host)}/delay", body={"delay_s": delay_s, "per_host": per_host}),
        )

    def deny(self, host: str) -> types.HostStatus:
        """Add a host to the deny list (opt-out). It gets its last request within 2 s; its URLs are skipped as
        `denied`.
        """
        return cast("types.HostStatus", self._call("POST", f"/v1/hosts/{self._word(host)}/deny"))

    def allow(self, host: str) -> types.HostStatus:
        """Remove a host from the deny list. Skipped URLs stay skipped."""
        return cast("types.HostStatus", self._call("POST", f"/v1/hosts/{self._word(host)}/allow"))

    def explain(
        self, *, url: str | None = None, host: str | None = None, crawl: str | None = None
    ) -> types.Explanation:
        """The state of a URL or host, and why it is not done. The answer includes the position in the queue, blocks
        and their reason, the robots.txt rule, the page budget, the worker that holds the URL, and the dead
        letter.
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
        """List the dead letters of a crawl, oldest first; those of hosts that are dead for the crawl come last. One
        request examines a limited number of rows, so `items` may be short or empty although `next` is not null.
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
        host: str | None = None,
        stage: str | None = None,
        cause: str | None = None,
        since: str | None = None,
        by: str | None = None,
        crawl: str | None = None,
    ) -> types.LetterGroups:
        """Count the dead letters that can be replayed, by cause, host or stage."""
        return cast(
            "types.LetterGroups",
            self._call(
                "GET",
                "/v1/failures/groups",
                query={"host": host, "stage": stage, "cause": cause, "since": since, "by": by, "crawl": crawl},
            ),
        )

    def replay_failures(
        self,
        *,
        host: str | None = None,
        stage: str | None = None,
        cause: str | None = None,
        since: str | None = None,
        crawl: str | None = None,
        error: str | None = None,
        ids: list[str] | None = None,
        limit: int | None = None,
        dry_run: bool | None = None,
    ) -> types.Replayed:
        """Retry dead letters from the stage that failed; their history is kept. Workers start at once. A finished
        crawl runs again; a cancelled one does not.
        """
        return cast(
            "types.Replayed",
            self._call(
                "POST",
                "/v1/failures/replay",
                body={
                    "host": host,
                    "stage": stage,
                    "cause": cause,
                    "since": since,
                    "crawl": crawl,
                    "error": error,
                    "ids": ids,
                    "limit": limit,
                    "dry_run": dry_run,
                },
            ),
        )

    def healthz(self) -> types.Alive:
        """Whether the process is alive. It contacts no other service."""
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
        """Metrics of the whole fleet for Prometheus, without the gauges of unavailable services."""
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
        """List the pages of a crawl, in the order in which they were stored. With `since` but without `host`, `url`
        or a rare `status`, the order is that of the fetches. One request examines a limited number of rows, so
        `items` may be short or empty although `next` is not null.
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
        """The metadata of a page."""
        return cast("types.PageOf", self._call("GET", f"/v1/pages/{self._word(id)}"))

    def content(self, id: str) -> bytes:
        """The stored body of a page, as an attachment, so that a browser does not show it as part of this site."""
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
        """The published records of a crawl with a schema, in the order in which they were stored. Records that need
        a decision are `held`: GET /v1/reviews lists them.
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
        """What changed since another crawl: the previous run of its schedule, or the crawl given by `against`. A
        `gone` page now answers 404 or 410, or no link leads to it any more. This crawl did not read an `unread`
        page.
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
        """List the records that need a decision, oldest first, with their withheld values. With `schema`, `items`
        may be short or empty although `next` is not null.
        """
        return cast(
            "types.PageOfReviewItem",
            self._call(
                "GET", "/v1/reviews", query={"cursor": cursor, "limit": limit, "crawl": crawl, "schema": schema}
            ),
        )

    def record(self, id: str) -> types.RecordInfo:
        """A record with its evidence. A record that is not published needs the scope `write`."""
        return cast("types.RecordInfo", self._call("GET", f"/v1/records/{self._word(id)}"))

    def record_review(self, id: str) -> types.RecordReview:
        """Everything a reviewer needs: the record, its withheld values, the texts with the evidence, all decisions."""
        return cast("types.RecordReview", self._call("GET", f"/v1/records/{self._word(id)}/review"))

    def review(
        self,
        id: str,
        *,
        decision: Literal["approve", "reject", "correct"],
        by: str | None = None,
        note: str | None = None,
        correction: dict[str, Any] | None = None,
        golden: bool | None = None,
    ) -> types.RecordReview:
        """Approve, reject or correct a record. The decision is stored with its author and time. An approved or
        corrected record is published and never replaced: a new extraction becomes a separate version.
        """
        return cast(
            "types.RecordReview",
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
        """Create a schedule: a crawl that runs repeatedly. Beat starts its runs; each planned time has one run.
        Seeds that cannot be crawled are refused before anything is stored.
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
        """List schedules in the order of their creation."""
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
        """Start no more runs until the schedule is resumed. A running crawl continues."""
        return cast("types.ScheduleInfo", self._call("POST", f"/v1/schedules/{self._word(id)}/pause"))

    def resume_schedule(self, id: str) -> types.ScheduleInfo:
        """Resume a paused schedule from now on. Missed runs are not repeated."""
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
        """This API on one page, without scripts or external resources."""
        return cast("str", await self._call_async("GET", "/docs", kind="text"))

    async def submit(
        self,
        *,
        seeds: list[str],
        idempotency_key: str | None = None,
        lane: Literal["high", "batch", "slow"] | None = None,
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
        """Create a crawl. It is stored before the answer, and workers start it at once. Seeds that cannot be crawled
        are refused; the problem lists the first 20. Send very many seeds as NDJSON, which is stored while it
        arrives. An interrupted upload without an Idempotency-Key is cancelled; with a key it can be sent again
        within an hour.
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
        """Progress of a crawl: state, counts, rate, estimated end. The id may be its beginning, or `last`."""
        return cast("types.CrawlStatus", await self._call_async("GET", f"/v1/crawls/{self._word(id)}"))

    async def delete_crawl(self, id: str) -> types.Deleting:
        """Delete a crawl with all its pages, bodies, records, dead letters and requests. A running crawl ends within
        2 s. Its state is `deleting` until everything is gone, which may take a while. A body that pages of other
        crawls refer to is kept for them.
        """
        return cast("types.Deleting", await self._call_async("DELETE", f"/v1/crawls/{self._word(id)}", accepted=(202,)))

    async def pause(self, id: str) -> types.CrawlStatus:
        """Pause a crawl. It sends its last request within 2 s."""
        return cast("types.CrawlStatus", await self._call_async("POST", f"/v1/crawls/{self._word(id)}/pause"))

    async def resume(self, id: str) -> types.CrawlStatus:
        """Resume a paused crawl."""
        return cast("types.CrawlStatus", await self._call_async("POST", f"/v1/crawls/{self._word(id)}/resume"))

    async def cancel(self, id: str) -> types.CrawlStatus:
        """End a crawl within 2 s, permanently. Fetched pages stay; open URLs count as skipped."""
        return cast("types.CrawlStatus", await self._call_async("POST", f"/v1/crawls/{self._word(id)}/cancel"))

    def events(self, id: str, *, last_event_id: str | None = None) -> AsyncIterator[Event]:
        """Follow a crawl (server-sent events). The server sends an event when counts or state change, at most once a
        second. The stream ends with the crawl, and after 5 minutes: reconnect with Last-Event-ID. If too many
        clients are connected (503), poll `GET /v1/crawls/{id}`.
        """
        return self._events_async(
            "GET", f"/v1/crawls/{self._word(id)}/events", headers={"Last-Event-ID": last_event_id}
        )

    async def delete_pages(
        self, *, url: str | None = None, host: str | None = None, crawl: str | None = None
    ) -> types.Deleting:
        """Delete the pages of a URL or of a host, with their bodies and records, in one crawl or in all. A body that
        other pages refer to is kept for them. The URL stays done in its crawl, which does not fetch it again.
        """
        return cast(
            "types.Deleting",
            await self._call_async(
                "DELETE", "/v1/pages", query={"url": url, "host": host, "crawl": crawl}, accepted=(202,)
            ),
        )

    async def list_deletions(self) -> types.PendingDeletions:
        """List the deletions in progress."""
        return cast("types.PendingDeletions", await self._call_async("GET", "/v1/deletions"))

    async def list_hosts(
        self, *, cursor: str | None = None, limit: int | None = None, notable: bool | None = None
    ) -> types.PageOfHostSummary:
        """List hosts by name."""
        return cast(
            "types.PageOfHostSummary",
            await self._call_async("GET", "/v1/hosts", query={"cursor": cursor, "limit": limit, "notable": notable}),
        )

    async def host(self, host: str) -> types.HostStatus:
        """When a host gets its next request and why not now, its delay and the source of it, failures, robots.txt."""
        return cast("types.HostStatus", await self._call_async("GET", f"/v1/hosts/{self._word(host)}"))

    async def block(self, host: str, *, seconds: float) -> types.HostStatus:
        """Send no requests to a host for some time, in every crawl. Its URLs wait."""
        return cast(
            "types.HostStatus",
            await self._call_async("POST", f"/v1/hosts/{self._word(host)}/block", body={"seconds": seconds}),
        )

    async def unblock(self, host: str) -> types.HostStatus:
        """End a wait that the host, its failures or `block` caused. The next request follows a delay later."""
        return cast("types.HostStatus", await self._call_async("POST", f"/v1/hosts/{self._word(host)}/unblock"))

    async def delay(self, host: str, *, delay_s: float | None = None, per_host: int | None = None) -> types.HostStatus:
        """Set the operator's delay for a host. robots.txt and the crawls can only make it longer."""
        return cast(
            "types.HostStatus",
            await self._call_async(
                "POST", f"/v1/hosts/{self._word(host)}/delay", body={"delay_s": delay_s, "per_host": per_host}
            ),
        )

    async def deny(self, host: str) -> types.HostStatus:
        """Add a host to the deny list (opt-out). It gets its last request within 2 s; its URLs are skipped as
        `denied`.
        """
        return cast("types.HostStatus", await self._call_async("POST", f"/v1/hosts/{self._word(host)}/deny"))

    async def allow(self, host: str) -> types.HostStatus:
        """Remove a host from the deny list. Skipped URLs stay skipped."""
        return cast("types.HostStatus", await self._call_async("POST", f"/v1/hosts/{self._word(host)}/allow"))

    async def explain(
        self, *, url: str | None = None, host: str | None = None, crawl: str | None = None
    ) -> types.Explanation:
        """The state of a URL or host, and why it is not done. The answer includes the position in the queue, blocks
        and their reason, the robots.txt rule, the page budget, the worker that holds the URL, and the dead
        letter.
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
        """List the dead letters of a crawl, oldest first; those of hosts that are dead for the crawl come last. One
        request examines a limited number of rows, so `items` may be short or empty although `next` is not null.
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
        host: str | None = None,
        stage: str | None = None,
        cause: str | None = None,
        since: str | None = None,
        by: str | None = None,
        crawl: str | None = None,
    ) -> types.LetterGroups:
        """Count the dead letters that can be replayed, by cause, host or stage."""
        return cast(
            "types.LetterGroups",
            await self._call_async(
                "GET",
                "/v1/failures/groups",
                query={"host": host, "stage": stage, "cause": cause, "since": since, "by": by, "crawl": crawl},
            ),
        )

    async def replay_failures(
        self,
        *,
        host: str | None = None,
        stage: str | None = None,
        cause: str | None = None,
        since: str | None = None,
        crawl: str | None = None,
        error: str | None = None,
        ids: list[str] | None = None,
        limit: int | None = None,
        dry_run: bool | None = None,
    ) -> types.Replayed:
        """Retry dead letters from the stage that failed; their history is kept. Workers start at once. A finished
        crawl runs again; a cancelled one does not.
        """
        return cast(
            "types.Replayed",
            await self._call_async(
                "POST",
                "/v1/failures/replay",
                body={
                    "host": host,
                    "stage": stage,
                    "cause": cause,
                    "since": since,
                    "crawl": crawl,
                    "error": error,
                    "ids": ids,
                    "limit": limit,
                    "dry_run": dry_run,
                },
            ),
        )

    async def healthz(self) -> types.Alive:
        """Whether the process is alive. It contacts no other service."""
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
        """Metrics of the whole fleet for Prometheus, without the gauges of unavailable services."""
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
        """List the pages of a crawl, in the order in which they were stored. With `since` but without `host`, `url`
        or a rare `status`, the order is that of the fetches. One request examines a limited number of rows, so
        `items` may be short or empty although `next` is not null.
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
        """The metadata of a page."""
        return cast("types.PageOf", await self._call_async("GET", f"/v1/pages/{self._word(id)}"))

    async def content(self, id: str) -> bytes:
        """The stored body of a page, as an attachment, so that a browser does not show it as part of this site."""
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
        """The published records of a crawl with a schema, in the order in which they were stored. Records that need
        a decision are `held`: GET /v1/reviews lists them.
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
        """What changed since another crawl: the previous run of its schedule, or the crawl given by `against`. A
        `gone` page now answers 404 or 410, or no link leads to it any more. This crawl did not read an `unread`
        page.
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
        """List the records that need a decision, oldest first, with their withheld values. With `schema`, `items`
        may be short or empty although `next` is not null.
        """
        return cast(
            "types.PageOfReviewItem",
            await self._call_async(
                "GET", "/v1/reviews", query={"cursor": cursor, "limit": limit, "crawl": crawl, "schema": schema}
            ),
        )

    async def record(self, id: str) -> types.RecordInfo:
        """A record with its evidence. A record that is not published needs the scope `write`."""
        return cast("types.RecordInfo", await self._call_async("GET", f"/v1/records/{self._word(id)}"))

    async def record_review(self, id: str) -> types.RecordReview:
        """Everything a reviewer needs: the record, its withheld values, the texts with the evidence, all decisions."""
        return cast("types.RecordReview", await self._call_async("GET", f"/v1/records/{self._word(id)}/review"))

    async def review(
        self,
        id: str,
        *,
        decision: Literal["approve", "reject", "correct"],
        by: str | None = None,
        note: str | None = None,
        correction: dict[str, Any] | None = None,
        golden: bool | None = None,
    ) -> types.RecordReview:
        """Approve, reject or correct a record. The decision is stored with its author and time. An approved or
        corrected record is published and never replaced: a new extraction becomes a separate version.
        """
        return cast(
            "types.RecordReview",
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
        """Create a schedule: a crawl that runs repeatedly. Beat starts its runs; each planned time has one run.
        Seeds that cannot be crawled are refused before anything is stored.
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
        """List schedules in the order of their creation."""
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
        """Start no more runs until the schedule is resumed. A running crawl continues."""
        return cast("types.ScheduleInfo", await self._call_async("POST", f"/v1/schedules/{self._word(id)}/pause"))

    async def resume_schedule(self, id: str) -> types.ScheduleInfo:
        """Resume a paused schedule from now on. Missed runs are not repeated."""
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
