"""The backend of a Curtsy API: every request goes to the server."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from curtsy.client.backend import Document, ResumeCommand
from curtsy.client.http import Client, word
from curtsy.control import changes as comparing
from curtsy.control import explain as explaining
from curtsy.core.errors import UsageError
from curtsy.export import writing
from curtsy.export.page_details import PARTS
from curtsy.export.request import ExportRequest
from curtsy.export.targets import Target
from curtsy.grounding import schema as schemas

#: dead letters that one request may replay
_REPLAYED_AT_ONCE = 100_000
#: crawls that are searched for a URL
_CRAWLS_SEARCHED = 20
BAD_CURSOR = "Invalid `go_on`: use the value of an earlier answer."


class RemoteBackend:
    """Implements `Backend` over HTTP."""

    def __init__(self, client: Client) -> None:
        self._client = client

    # Crawls

    def submit(self, options: Mapping[str, Any], seeds: Iterable[str]) -> str:
        schema = options.get("schema")
        sent = {"schema": sendable_schema(schema)} if isinstance(schema, str) else {}
        return self._client.submit({**options, **sent}, seeds)

    def crawl(self, id: str) -> Document:
        return self._get(f"/v1/crawls/{word(id)}")

    def crawls(self, **filters: str | None) -> Iterable[Document]:
        return self._client.items("/v1/crawls", **filters)

    def change_crawl(self, id: str, verb: str) -> Document:
        return self._post(f"/v1/crawls/{self.crawl(id)['id']}/{verb}")

    def how_to_resume(self, id: str, command: ResumeCommand) -> str | None:
        return None

    def delete(self, crawl: str | None, url: str | None, host: str | None) -> Document:
        if url is None and host is None:
            found = self._client.delete(f"/v1/crawls/{self.crawl(crawl or '')['id']}")
        else:
            found = self._client.delete("/v1/pages", url=url, host=host, crawl=crawl)
        return {"id": found["id"], "done": False}

    def explain(self, target: str, crawl: str | None) -> Document:
        url, host = explaining.target(target, "host")
        return self._get("/v1/explain", **({"host": host} if url is None else {"url": url, "crawl": crawl}))

    def changes(self, crawl: str, against: str | None, kind: str | None, limit: int) -> Document:
        path = f"/v1/crawls/{word(crawl)}/changes"
        found = self._get(path, against=against, kind=kind, limit=1)
        del found["next"]

        def some(one: str, most: int) -> list[Document]:
            items: list[Document] = self._get(path, against=against, kind=one, limit=most)["items"]
            return items

        return found | {"items": comparing.listed(some, kind, limit)}

    # Dead letters

    def failures(self, filters: Mapping[str, str], limit: int) -> list[Document]:
        return list(islice(self._client.items("/v1/failures", **filters, limit=min(limit, 1000)), limit))

    def replay(self, filters: Mapping[str, str], limit: int | None, dry_run: bool) -> Document:
        done: Document = {"dead_letters": 0, "crawls": [], "of_cancelled_crawls": 0, "dry_run": dry_run}
        left = limit if limit is not None else 10**9
        while left > 0:
            some = min(left, _REPLAYED_AT_ONCE)
            answer = self._post("/v1/failures/replay", {**filters, "limit": some, "dry_run": dry_run})
            done["dead_letters"] += answer["dead_letters"]
            done["of_cancelled_crawls"] = answer["of_cancelled_crawls"]
            done["crawls"] = sorted({*done["crawls"], *answer["crawls"]})
            left -= some
            if dry_run or answer["dead_letters"] < some:
                break
        return done

    # Records

    def records(
        self, crawl: str, status: str = "published", low_confidence: bool | None = None, every_schema: bool = False
    ) -> Iterator[Document]:
        query = {"status": status, "low_confidence": low_confidence, "every_schema": every_schema or None}
        return self._client.items(f"/v1/crawls/{word(crawl)}/records", **query)

    def reviews(self, crawl: str | None, limit: int, **filters: Any) -> list[Document]:
        query = {"crawl": crawl, "limit": min(limit, 1000), **filters}
        return list(islice(self._client.items("/v1/reviews", **query), limit))

    def review(self, record: int) -> Document:
        return self._get(f"/v1/records/{record}/review")

    def decide(self, record: int, decision: Mapping[str, Any]) -> Document:
        return self._post(f"/v1/records/{record}/review", dict(decision))

    def decide_many(self, ids: list[int], decision: Mapping[str, Any]) -> Document:
        return self._post("/v1/reviews/decide", {**decision, "ids": ids})

    def undo_review(self, record: int, by: str | None, note: str) -> Document:
        return self._post(f"/v1/records/{record}/review/undo", {"by": by, "note": note})

    def undo_batch(self, batch: str, by: str | None, note: str) -> Document:
        return self._post("/v1/reviews/undo", {"batch": batch, "by": by, "note": note})

    # Learned selectors

    def selectors(self, host: str | None, schema: str | None, state: str | None, limit: int) -> list[Document]:
        query = {"host": host, "schema": schema, "state": state or "all", "limit": min(limit, 1000)}
        return list(islice(self._client.items("/v1/selectors", **query), limit))

    def selector(self, n: int) -> Document:
        return self._get(f"/v1/selectors/{n}")

    def forget_selector(self, n: int) -> Document:
        return self._post(f"/v1/selectors/{n}/forget")

    # Schedules

    def schedules(self) -> list[Document]:
        return list(self._client.items("/v1/schedules"))

    def add_schedule(self, seeds: list[str], **fields: Any) -> Document:
        return self._post("/v1/schedules", fields | {"seeds": seeds})

    def change_schedule(self, id: str, verb: str) -> Document:
        if verb != "remove":
            return self._post(f"/v1/schedules/{word(id)}/{verb}")
        found = self._get(f"/v1/schedules/{word(id)}")
        self._client.delete(f"/v1/schedules/{found['id']}")
        return found

    def schedule(self, id: str) -> Document:
        return self._get(f"/v1/schedules/{word(id)}")

    def edit_schedule(self, id: str, changes: Mapping[str, Any]) -> Document:
        found = self.schedule(id)
        sent = dict(changes)
        if "crawl" in sent:
            sent["crawl"] = found["crawl"] | sent["crawl"]
        done: Document = self._client.patch(f"/v1/schedules/{found['id']}", sent)
        return done

    def run_schedule(self, id: str) -> Document:
        return self._post(f"/v1/schedules/{word(id)}/run")

    def schedule_runs(self, id: str, limit: int) -> list[Document]:
        found: list[Document] = self._get(f"/v1/schedules/{word(id)}/runs", limit=limit)["items"]
        return found

    # Pages

    def pages(self, crawl: str, limit: int) -> list[Document]:
        found: list[Document] = self._get(f"/v1/crawls/{word(crawl)}/pages", limit=limit)["items"]
        return found

    def urls(self, crawl: str, limit: int) -> list[Document]:
        listed = self._client.items(f"/v1/crawls/{word(crawl)}/urls", limit=min(limit, 1000))
        return [dict(one) for one in islice(listed, limit)]

    def page(self, id: str) -> Document | None:
        return self._get(f"/v1/pages/{word(id)}")

    def page_of_url(self, url: str, crawl: str | None) -> Document | None:
        ids = [crawl] if crawl else (one["id"] for one in islice(self.crawls(), _CRAWLS_SEARCHED))
        for id in ids:
            for page in islice(self._client.items(f"/v1/crawls/{word(id)}/pages", url=url, limit=100), 100):
                if page["url"] == url:
                    return dict(page)
        return None

    def content(self, page: Document) -> bytes | None:
        if not page["has_content"]:
            return None
        what = "pages" if page.get("is_page", True) else "responses"
        status, body = self._client.exchange("GET", f"/v1/{what}/{word(page['id'])}/content", None, {"Accept": "*/*"})
        if status >= 400:
            self._client.read(status, body)
        return body

    def scan_pages(self, crawl: str | None, cursor: str | None) -> Iterator[tuple[str, Document, bytes | None]]:
        """Pages of one crawl, by default the newest, in the order in which they were stored."""
        id, past, at = _place(cursor) if cursor else (self.crawl(crawl or "last")["id"], 0, None)
        while True:
            found = self._get(f"/v1/crawls/{word(id)}/pages", limit=100, cursor=at)
            for number, page in enumerate(found["items"][past:], past + 1):
                yield f"{id} {number} {at or ''}", page, self.content(page)
            past, at = 0, found["next"]
            if at is None:
                return

    def count_pages(self, crawl: str | None) -> int:
        return int(self.crawl(crawl or "last")["counts"]["pages"])

    def page_details(self, target: str, crawl: str | None, parts: Collection[str]) -> Document:
        found = self._get("/v1/show", url=target, crawl=crawl, parts=",".join(parts) or "none")
        return {name: value for name, value in found.items() if name not in PARTS or name in parts}

    # Exports

    def export(
        self,
        crawl: str,
        wanted: ExportRequest,
        target: Target,
        *,
        incremental: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> Document:
        if incremental:
            raise UsageError("--incremental does not work with --api. Export to a new folder, or use --data-dir.")
        id = self.crawl(crawl)["id"]
        query: dict[str, Any] = {
            "what": wanted.what, "format": wanted.format, "content": ",".join(wanted.content) or None,
            "partition_by": wanted.partition_by, "lists": wanted.lists if wanted.what == "tables" else None,
            "csv_safe": wanted.csv_safe or None, "full_page": wanted.full_page or None,
        }  # fmt: skip
        blocks = self._client.blocks(f"/v1/crawls/{id}/export", **query)
        n, files = writing.write_received(blocks, wanted, target)
        return {"id": id, "rows": n, "files": files}

    def bundle(self, crawl: str, target: Target) -> Document:
        id = self.crawl(crawl)["id"]
        blocks = self._client.blocks(f"/v1/crawls/{id}/bundle")
        return {"id": id, "files": writing.write_received_bundle(blocks, target)}

    def _get(self, path: str, **query: Any) -> Document:
        found: Document = self._client.get(path, **query)
        return found

    def _post(self, path: str, body: Any = None) -> Document:
        found: Document = self._client.post(path, body)
        return found


def sendable_schema(spec: str) -> str | Document:
    """The name of a schema that the server knows, or the JSON Schema of a local file or class."""
    if not spec.endswith(".json") and ":" not in spec:
        return spec
    if spec.endswith(".json") and Path(spec).with_suffix(".toml").exists():
        raise UsageError(f"The hints beside {spec} cannot be sent over an API: put them into the file as `x-curtsy`.")
    found = schemas.load(spec)
    return {"title": found.name, **found.json_schema}


def _place(cursor: str) -> tuple[str, int, str | None]:
    """(crawl, number of items already read from a list, the cursor of the list)."""
    id, _, rest = cursor.partition(" ")
    past, _, at = rest.partition(" ")
    if not past.isdecimal() or len(past) > 4:
        raise UsageError(BAD_CURSOR)
    return id, int(past), at or None
