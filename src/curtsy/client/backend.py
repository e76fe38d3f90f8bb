"""The operations of commands, MCP tools and scripts, on the store of this machine or through an API server.

Both implementations (`local`, `remote`) return the documents of the HTTP API as plain dictionaries.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Protocol

from curtsy.export.request import ExportRequest
from curtsy.export.targets import Target

Document = dict[str, Any]
#: makes the command that resumes a crawl from its id and the settings that are stored with it
ResumeCommand = Callable[[str, Mapping[str, Any]], str]


class Backend(Protocol):
    # Crawls

    def submit(self, options: Mapping[str, Any], seeds: Iterable[str]) -> str:
        """Submits a crawl; its id. `options` are the fields of a CrawlRequest."""

    def crawl(self, id: str) -> Document:
        """The status of a crawl by its id, the beginning of it, or `last`."""

    def crawls(self, **filters: str | None) -> Iterable[Document]:
        """Summaries of crawls, newest first; `q`, `tag`, `owner`, `schedule` as in the API."""

    def change_crawl(self, id: str, verb: str) -> Document:
        """`pause`, `resume` or `cancel`; its new status."""

    def how_to_resume(self, id: str, command: ResumeCommand) -> str | None:
        """The command that resumes the crawl; None if workers resume it."""

    def delete(self, crawl: str | None, url: str | None, host: str | None) -> Document:
        """Deletes a crawl, or the pages of a URL or host; `done` says whether that is complete."""

    def explain(self, target: str, crawl: str | None) -> Document:
        """The state of a URL or a host, with `why` in sentences."""

    def changes(self, crawl: str, against: str | None, kind: str | None, limit: int) -> Document:
        """What changed between two crawls: counts, and at most `limit` pages."""

    # Dead letters

    def failures(self, filters: Mapping[str, str], limit: int) -> list[Document]: ...

    def replay(self, filters: Mapping[str, str], limit: int | None, dry_run: bool) -> Document: ...

    # Records

    def records(
        self, crawl: str, status: str = "published", low_confidence: bool | None = None, every_schema: bool = False
    ) -> Iterator[Document]: ...

    def reviews(self, crawl: str | None, limit: int, **filters: Any) -> list[Document]:
        """Records that need a decision, oldest first; `filters` are the fields of a ReviewFilter."""

    def review(self, record: int) -> Document:
        """A record with its sources and decisions."""

    def decide(self, record: int, decision: Mapping[str, Any]) -> Document:
        """Approves, rejects or corrects a record; the record afterwards."""

    def decide_many(self, ids: list[int], decision: Mapping[str, Any]) -> Document:
        """Approves or rejects many records: `batch`, `records` that changed, `refused` with reasons."""

    def undo_review(self, record: int, by: str | None, note: str) -> Document:
        """Undoes the last decision about a record; the record afterwards."""

    def undo_batch(self, batch: str, by: str | None, note: str) -> Document:
        """Undoes a decision about many records; as `decide_many`."""

    # Learned selectors

    def selectors(self, host: str | None, schema: str | None, state: str | None, limit: int) -> list[Document]:
        """Learned selectors by number; `state` None: also retired ones."""

    def selector(self, n: int) -> Document:
        """A learned selector, with pages that taught it."""

    def forget_selector(self, n: int) -> Document:
        """Retires a learned selector; the selector afterwards."""

    # Schedules

    def schedules(self) -> list[Document]: ...

    def add_schedule(self, seeds: list[str], **fields: Any) -> Document: ...

    def change_schedule(self, id: str, verb: str) -> Document:
        """`pause`, `resume` or `remove`; the schedule."""

    def schedule(self, id: str) -> Document: ...

    def edit_schedule(self, id: str, changes: Mapping[str, Any]) -> Document:
        """Changes a schedule from its next run on; `crawl` has the options that change."""

    def run_schedule(self, id: str) -> Document:
        """Plans a run for now; the run."""

    def schedule_runs(self, id: str, limit: int) -> list[Document]:
        """The runs of a schedule, newest first, with their results."""

    # Pages

    def pages(self, crawl: str, limit: int) -> list[Document]:
        """The first pages of a crawl."""

    def urls(self, crawl: str, limit: int) -> list[Document]:
        """URLs that a crawl knows, fetched or not."""

    def page(self, id: str) -> Document | None: ...

    def page_of_url(self, url: str, crawl: str | None) -> Document | None:
        """The page of a normalized URL, in one crawl or in the newest that has it."""

    def content(self, page: Document) -> bytes | None:
        """The body of a page; None if it is not stored, or is damaged."""

    def scan_pages(self, crawl: str | None, cursor: str | None) -> Iterator[tuple[str, Document, bytes | None]]:
        """Pages to search with their bodies, each with the cursor that continues after it."""

    def count_pages(self, crawl: str | None) -> int:
        """How many pages `scan_pages` has."""

    def page_details(self, target: str, crawl: str | None, parts: Collection[str]) -> Document:
        """A page by its URL or id, as a row, with `has_content` and these parts: `headers`, `text`, `markdown`,
        `links`, `records`, `history`.
        """

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
        """Writes an export; its crawl's `id`, how many `rows` it has (None if that is not known), and its `files` if
        tables are separate files. `progress` is called with the number of pages read from the store.
        """

    def bundle(self, crawl: str, target: Target) -> Document:
        """Writes a crawl to hand over; its `id` and the names of the `files`."""
