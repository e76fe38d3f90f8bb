"""`python -m tests.judge.selectors [--pages N] [--careless SHARE]`: what learned selectors save, also after a redesign.

A site has three templates with N pages each (tests/support/templated_site.py), and a model server that reads the page
in its prompt. The first 20 pages of each template are for learning. The site is extracted twice: with the model on
every page, and with learned selectors. Then the site is redesigned. Exits with 1 if a promise of decision 90 is broken.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import orgs
from templated_site import SCHEMA, TEMPLATES, HonestModel, Made, pages

from curtsy.core.record import Record
from curtsy.records import learned_selectors
from curtsy.records.extraction import Parts
from curtsy.store.engine import Store
from curtsy.store.segments import Segments

LEARNING = 20
MOST_CALLS = 5
MOST_LOST = 0.01
NOTICED_WITHIN = 20


class Figures(NamedTuple):
    """Values of one extraction, and its cost."""

    pages: int
    right: int
    wrong: int
    missed: int
    #: template -> calls
    calls: dict[str, int]
    cpu_s: float
    #: template -> pages until the model was asked, in the order of the records; None: never
    asked_at: dict[str, int | None]

    @property
    def f1(self) -> float:
        return 2 * self.right / max(1, 2 * self.right + self.wrong + self.missed)

    @property
    def cpu_ms(self) -> float:
        return 1000 * self.cpu_s / max(1, self.pages)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.judge.selectors", description=__doc__)
    parser.add_argument("--pages", type=int, default=200, metavar="N", help="pages of each template")
    parser.add_argument("--careless", type=float, default=0.0, metavar="SHARE", help="values that the model overlooks")
    options = parser.parse_args()
    each = options.pages
    made = list(pages(2 * each, each))
    first, rest, new = _cut(made, 0, LEARNING), _cut(made, LEARNING, each), _cut(made, each, 2 * each)
    with tempfile.TemporaryDirectory() as folder:
        every = _run(Path(folder) / "every", [first, rest], options.careless, learn=False)
        learned = _run(Path(folder) / "learned", [first, rest, new], options.careless, learn=True)
    names = ("first pages", "later pages", "after the redesign")
    print("| extraction | pages | model calls by template | right | wrong | missed | F1 | CPU ms per page |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for kind, name, one in (
        *(("model on every page", *pair) for pair in zip(names, every, strict=False)),
        *(("learned selectors", *pair) for pair in zip(names, learned, strict=True)),
    ):
        calls = ", ".join(str(one.calls[template]) for template in TEMPLATES)
        counts = f"{one.right} | {one.wrong} | {one.missed} | {one.f1:.4f} | {one.cpu_ms:.1f}"
        print(f"| {kind}, {name} | {one.pages} | {calls} | {counts} |")
    print(f"\nRedesign: pages until the model was asked: {learned[2].asked_at}")
    broken = _broken(every, learned)
    print("\n".join(f"- FELL: {one}" for one in broken) or "\nAll promises hold.")
    return int(bool(broken))


def _cut(made: list[Made], start: int, end: int) -> list[Made]:
    return made[start * len(TEMPLATES) : end * len(TEMPLATES)]


def _broken(every: list[Figures], learned: list[Figures]) -> list[str]:
    found = []
    later = learned[1]
    for template, calls in later.calls.items():
        allowed = MOST_CALLS * max(1.0, later.pages / len(TEMPLATES) / 1000)
        if calls > allowed:
            found.append(f"{template}: {calls} calls after learning, {allowed:g} are allowed")
    if every[1].f1 - later.f1 > MOST_LOST:
        found.append(f"F1 {later.f1:.4f} is more than a point below {every[1].f1:.4f}")
    if learned[2].wrong:
        found.append(f"{learned[2].wrong} wrong values after the redesign")
    for template, at in learned[2].asked_at.items():
        if at is None or at > NOTICED_WITHIN:
            found.append(f"{template}: the redesign was not noticed within {NOTICED_WITHIN} pages")
    return found


def _run(folder: Path, groups: list[list[Made]], careless: float, *, learn: bool) -> list[Figures]:
    folder.mkdir()
    with HonestModel(careless) as model, Store.open(f"sqlite:///{folder}/curtsy.sqlite") as store:
        segments = Segments(folder / "segments")
        parts = orgs.parts_of(
            store, segments, data_dir=folder, llm_url=model.url, llm_model="honest", learn_selectors=learn
        )
        found = [_extract(parts, model, some) for some in groups]  # type: ignore[arg-type]
        if learn:
            print(f"{len(learned_selectors.find(store, 0, 1000, state=None))} selectors were learned", file=sys.stderr)
        segments.close()
        return found


def _extract(parts: Parts, model: HonestModel, some: list[Made]) -> Figures:
    crawl = orgs.make(parts.store, parts.segments, [(one.url, one.body) for one in some], SCHEMA, llm="endpoint")
    began = time.process_time()
    orgs.run_all(parts, crawl, 3600)
    cpu_s = time.process_time() - began
    found = {one.url: one for one in orgs.all_records(parts.store, crawl, "published", "held")}
    counts = [_compare(one, found.get(one.url)) for one in some]
    right, wrong, missed = (sum(one[at] for one in counts) for at in range(3))
    calls = dict.fromkeys(TEMPLATES, 0)
    asked_at: dict[str, int | None] = dict.fromkeys(TEMPLATES)
    for template in TEMPLATES:
        records = [found[one.url] for one in some if one.template == template and one.url in found]
        asked = [bool(one.usage.get("calls")) for one in sorted(records, key=lambda one: one.n)]
        calls[template] = sum(asked)
        asked_at[template] = asked.index(True) + 1 if True in asked else None
    return Figures(len(some), right, wrong, missed, calls, cpu_s, asked_at)


def _compare(made: Made, record: Record | None) -> tuple[int, int, int]:
    """Right, wrong and missed values; each item of a list counts."""
    right = wrong = missed = 0
    data = {} if record is None else record.data
    for name in SCHEMA["properties"]:
        want, got = _listed(made.truth.get(name)), _listed(data.get(name))
        right += len(want & got)
        wrong += len(got - want)
        missed += len(want - got)
    return right, wrong, missed


def _listed(value: Any) -> set[Any]:
    return set(value) if isinstance(value, list) else set() if value is None else {value}


if __name__ == "__main__":
    sys.exit(main())
