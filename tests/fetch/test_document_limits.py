"""Documents have their own types and size limit, and together a bounded amount of memory."""

from __future__ import annotations

import asyncio
import gzip
from typing import Any

import pytest
import uvloop
from raw_server import answering, fetch, fetching, serving

from curtsy.content.documents.sniff import announced
from curtsy.core.errors import SettingsError
from curtsy.core.outcome import Action, Fault, Outcome
from curtsy.core.settings import Settings
from curtsy.core.settings_loading import load
from curtsy.fetch.document_limits import BodyBudget, DocumentLimits
from curtsy.rules.decide import decide

KEPT = ("text/html", "text/")
PDF = "application/pdf"


def limits(*kinds: str, most: int = 1000, memory: int = 10_000_000) -> DocumentLimits:
    return DocumentLimits(frozenset(kinds), most, BodyBudget(memory))


def answer(content_type: str, body: bytes, *more: str, chunked: bool = False) -> bytes:
    length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(body)}"
    head = "\r\n".join(("HTTP/1.1 200 OK", f"Content-Type: {content_type}", length, *more))
    sent = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if chunked else body
    return head.encode() + b"\r\n\r\n" + sent


async def _one(response: bytes, path: str, changes: dict[str, Any]) -> Outcome:
    async with serving(answering(response)) as server:
        rule = (f"*.test=127.0.0.1:{server.port}",)
        async with fetching(resolve=rule) as fetcher:
            return await fetch(fetcher, f"http://a.test{path}", keep_types=KEPT, fence=7, **changes)


def asked(response: bytes, documents: DocumentLimits, path: str = "/x", **changes: Any) -> Outcome:
    return uvloop.run(_one(response, path, {"max_bytes": 100, "documents": documents, **changes}))


@pytest.mark.parametrize("chunked", [False, True])
def test_a_document_may_be_larger_than_a_page(chunked: bool) -> None:
    assert asked(answer(PDF, b"x" * 1000, chunked=chunked), limits("pdf")).body == b"x" * 1000
    over = asked(answer(PDF, b"x" * 1001, chunked=chunked), limits("pdf"))
    assert (over.fault, over.broken_off, over.body) == (Fault.DOCUMENT_TOO_LARGE, True, b"")
    assert asked(answer("text/html", b"x" * 101, chunked=chunked), limits("pdf")).fault is Fault.TOO_LARGE


def test_a_document_that_unpacks_to_more_than_its_limit_is_broken_off() -> None:
    packed = gzip.compress(bytes(2_000_000))
    outcome = asked(answer(PDF, packed, "Content-Encoding: gzip"), limits("pdf", most=500_000))
    assert (outcome.fault, outcome.body) == (Fault.DOCUMENT_TOO_LARGE, b"")


def test_a_document_is_held_in_one_form() -> None:
    packed = gzip.compress(bytes(1000))
    held = asked(answer(PDF, packed, "Content-Encoding: gzip"), limits("pdf"), keep_gzip=True)
    assert (held.body, held.gzipped) == (bytes(1000), b"")
    page = asked(answer("text/html", packed, "Content-Encoding: gzip"), limits("pdf"), keep_gzip=True, max_bytes=1000)
    assert (page.body, page.gzipped) == (bytes(1000), packed)


def test_a_kind_that_is_not_wanted_is_not_fetched() -> None:
    outcome = asked(answer(PDF, b"x"), limits("docx"))
    assert (outcome.fault, outcome.broken_off, outcome.detail) == (Fault.DOCUMENT_TYPE, True, "pdf: application/pdf")
    assert decide(outcome, 0, Settings()).reason == "document_type"
    # A text is kept as other texts are, but has no larger limit.
    assert asked(answer("text/plain", b"x" * 100), limits("pdf")).fault is None
    assert asked(answer("text/plain", b"x" * 101), limits("pdf")).fault is Fault.TOO_LARGE


@pytest.mark.parametrize(
    ("content_type", "url", "disposition", "kind"),
    [
        ("application/octet-stream", "http://a.test/r.pdf?x=1", None, "pdf"),
        ("application/octet-stream", "http://a.test/download?id=1", 'attachment; filename="My report.XLSX"', "xlsx"),
        ("application/octet-stream", "http://a.test/r.bin", None, None),
        ("application/zip", "http://a.test/r.docx", None, "docx"),
        ("Text/CSV; charset=utf-8", "http://a.test/r", None, "csv"),
        ("text/html", "http://a.test/r.pdf", None, None),
        ("image/png", "http://a.test/r.pdf", None, None),
    ],
)
def test_the_name_decides_where_the_type_says_nothing(
    content_type: str, url: str, disposition: str | None, kind: str | None
) -> None:
    assert announced(content_type, url, disposition) == kind


def test_a_document_under_a_vague_type_is_fetched_by_its_name() -> None:
    response = answer("application/octet-stream", b"x" * 500)
    assert asked(response, limits("pdf"), path="/report.pdf").body == b"x" * 500
    assert asked(response, limits("pdf"), path="/report.bin").fault is Fault.WRONG_TYPE


# Memory


@pytest.mark.parametrize("chunked", [False, True])
def test_documents_without_room_are_broken_off_and_tried_again(chunked: bool) -> None:
    tight = limits("pdf", most=3_000_000, memory=2_000_000)
    assert tight.budget.take(1, 1_500_000)
    outcome = asked(answer(PDF, b"x" * 600_000, chunked=chunked), tight)
    assert (outcome.fault, outcome.broken_off) == (Fault.NO_ROOM, True)
    assert tight.budget.used == 1_500_000
    decision = decide(outcome, 0, Settings())
    assert (decision.action, decision.counts, decision.delay_ms) == (Action.RETRY, False, 2_000)
    tight.budget.free(1)
    assert asked(answer(PDF, b"x" * 600_000, chunked=chunked), tight).fault is None
    assert tight.budget.used >= 600_000


def test_a_document_holds_its_memory_until_it_is_stored_and_a_failed_one_does_not() -> None:
    held = limits("pdf", most=3_000_000)
    asked(answer(PDF, b"x" * 600_000), held)
    assert held.budget.used == 600_000
    asked(answer(PDF, b"x" * 600_000)[:-1], held)  # the connection closes before the end
    assert held.budget.used == 0

    taken = asyncio.Event()

    class Telling(BodyBudget):
        def take(self, fence: int, size: int) -> bool:
            asyncio.get_running_loop().call_soon(taken.set)
            return super().take(fence, size)

    cancelled = DocumentLimits(frozenset(("pdf",)), 3_000_000, Telling(3_000_000))

    async def test() -> None:
        response = answer(PDF, b"x" * 600_000)[:-1]
        async with (
            serving(answering(response, then_close=False)) as server,
            fetching(resolve=(f"*.test=127.0.0.1:{server.port}",)) as fetcher,
        ):
            wanted = fetch(fetcher, "http://a.test/", id=5, fence=7, max_bytes=100, documents=cancelled)
            waiting = asyncio.ensure_future(wanted)
            await taken.wait()
            fetcher.cancel(5)
            assert (await waiting).fault is Fault.CANCELLED

    uvloop.run(test())
    assert cancelled.budget.used == 0


def test_a_document_that_never_fits_is_an_error_of_the_settings() -> None:
    with pytest.raises(SettingsError, match="max_document_mb 300 must not exceed document_memory_mb 256"):
        load(max_document_mb=300)
