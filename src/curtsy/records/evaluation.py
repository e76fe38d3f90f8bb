"""Quality of records for which the truth is known: precision and recall by field and rung, and validity of evidence.

Only published records count as exported. A value is right if it equals the true value of its field, ignoring case and
space; each item of a list counts separately. Evidence is checked again against the stored sources, by spans only: a
value is unsupported if none of its spans contains the words that it quotes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from curtsy.core.model import Crawl
from curtsy.core.record import Record
from curtsy.store import records, sources
from curtsy.store.engine import Store
from curtsy.tinyweb.facts import org_number
from curtsy.tinyweb.facts import truth as site_truth

#: JSON pointer of a field, `*` for items of lists -> its value, or all values of a list; None or empty: not stated
Truth = Mapping[str, Any]


@dataclass(slots=True)
class Tally:
    """Numbers of right, wrong and missed values."""

    right: int = 0
    wrong: int = 0
    missed: int = 0

    @property
    def precision(self) -> float | None:
        said = self.right + self.wrong
        return self.right / said if said else None

    @property
    def recall(self) -> float | None:
        stated = self.right + self.missed
        return self.right / stated if stated else None


@dataclass(slots=True)
class Report:
    """The result of an evaluation."""

    #: of exported values
    fields: dict[str, Tally] = field(default_factory=dict)
    rungs: dict[str, Tally] = field(default_factory=dict)
    #: by kind of subject
    kinds: dict[str, Tally] = field(default_factory=dict)
    #: number of facts to find
    stated: int = 0
    #: records
    exported: int = 0
    held: int = 0
    #: exported values without a valid span
    unsupported: int = 0
    #: withheld values, and how many of them are not true
    withheld: int = 0
    withheld_wrong: int = 0
    #: withheld values of a language model that are not true
    inventions: list[tuple[str, str, Any]] = field(default_factory=list)
    #: exported values that are not true: (url, path, value)
    mistakes: list[tuple[str, str, Any]] = field(default_factory=list)

    def of_rung(self, name: str) -> Tally:
        """Count everything that this rung did not find as missed."""
        found = self.rungs[name]
        return Tally(found.right, found.wrong, self.stated - found.right)

    @property
    def total(self) -> Tally:
        every = self.fields.values()
        return Tally(*(sum(getattr(one, name) for one in every) for name in ("right", "wrong", "missed")))


def evaluate(
    store: Store, crawl: Crawl, truth: Callable[[Record], Truth | None], kind: Callable[[Record], str] = lambda _: ""
) -> Report:
    """Evaluate all records of a crawl under its schema; skip records whose truth is unknown."""
    report = Report()
    after = 0
    while True:
        with store.read() as tx:
            found, after = records.chunk(tx, crawl.n, after, 200, None, ("published", "held"), crawl.schema_hash)
            texts = {record.n: {one.sha256: one.text for one in sources.of(tx, record.n)} for record in found}
        if not found:
            return report
        for record in found:
            known = truth(record)
            if known is not None:
                _judge(report, record, known, texts[record.n], kind(record))


def _judge(report: Report, record: Record, truth: Truth, texts: Mapping[str, str], kind: str) -> None:
    exported = record.status == "published"
    report.exported += exported
    report.held += not exported
    said: dict[str, list[tuple[Any, str]]] = {}
    if exported:
        for one in record.fields:
            said.setdefault(_starred(one["path"], truth), []).append((one["value"], one["rung"]))
            report.unsupported += not _is_supported(one, texts)
    for path, stated in truth.items():
        _tally(report, record, path, stated, said.get(path, []), kind)
    for one in record.withheld:
        report.withheld += 1
        if not _is_true(one["value"], truth.get(_starred(one["path"], truth))):
            report.withheld_wrong += 1
            if one["rung"] == "llm":
                report.inventions.append((record.url, one["path"], one["value"]))


def _tally(report: Report, record: Record, path: str, stated: Any, said: Iterable[tuple[Any, str]], kind: str) -> None:
    left = [_plain(one) for one in stated] if isinstance(stated, list | tuple) else [_plain(stated)]
    left = [one for one in left if one]
    tallies = [report.fields.setdefault(path, Tally()), report.kinds.setdefault(kind, Tally())]
    before = tallies[0].right
    for value, rung in said:
        by_rung = report.rungs.setdefault(rung, Tally())
        right = _plain(value) in left
        if right:
            left.remove(_plain(value))
        else:
            report.mistakes.append((record.url, path, value))
        for tally in (*tallies, by_rung):
            tally.right += right
            tally.wrong += not right
    for tally in tallies:
        tally.missed += len(left)
    report.stated += len(left) + sum(one.right for one in tallies[:1]) - before


def _is_supported(field_data: Mapping[str, Any], texts: Mapping[str, str]) -> bool:
    if field_data["rung"] in ("person", "function"):
        return True
    return field_data["verdict"] != "unsupported" and any(
        texts.get(one["sha256"], "")[one["start"] : one["end"]] == one["quote"] != "" for one in field_data["evidence"]
    )


def _is_true(value: Any, stated: Any) -> bool:
    every = stated if isinstance(stated, list | tuple) else [stated]
    return _plain(value) in {_plain(one) for one in every if one is not None}


def _plain(value: Any) -> str:
    return "" if value is None else " ".join(str(value).casefold().split()).strip(" .")


def _starred(path: str, truth: Truth) -> str:
    """Return a path as the truth names it: `/claims/*` for `/claims/3`."""
    starred = "/".join("*" if part.isdigit() else part for part in path.split("/"))
    return path if path in truth else starred


# The truth of the tiny web


def organization_truth(record: Record) -> Truth | None:
    """Return the generator's facts about a site's organization; `None` if the site is not one of the tiny web."""
    host = record.subject.removeprefix("site:").partition(":")[0]
    if org_number(host) is None:
        return None
    known = site_truth(host)
    return {
        "/name": known.name,
        "/mission": known.mission,
        "/founded_year": known.founded_year,
        "/headquarters": known.headquarters,
        "/sustainability_claims/*": [claim.text for claim in known.sustainability_claims],
        "/contact/email": known.contact.email,
        "/contact/phone": known.contact.phone,
        "/contact/address": known.contact.address,
    }


def organization_kind(record: Record) -> str:
    """Return how the site states its facts."""
    return site_truth(record.subject.removeprefix("site:").partition(":")[0]).kind.value
