"""`python -m tests.fuzz_documents [--count 5000] [--kinds pdf,docx] [--seed 1]`: readers of files get mutated files.

Each mutation flips bits, cuts, splices or repeats bytes, or edits a member of a ZIP file. A reader must return within
its limits and with valid offsets. PDF is read in the process with limits, as crawls do; the other readers in this one,
where an exception is a defect. CI runs a short form (`tests/content/documents/test_fuzz.py`).
"""

from __future__ import annotations

import argparse
import io
import random
import resource
import signal
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import get_args

sys.path[:0] = [str(Path(__file__).parent / "support")]

from document_samples import SAMPLES  # noqa: E402

from curtsy.content.documents.model import FileText, Limits, Problem  # noqa: E402
from curtsy.content.documents.reading import read_document  # noqa: E402
from curtsy.content.documents.wire import from_wire, to_wire  # noqa: E402
from curtsy.services.document_process import Documents  # noqa: E402

LIMITS = Limits(seconds=4.0, memory_bytes=1 << 30, characters=1_000_000, unpacked_bytes=64 << 20, pages=200)
_ZIPS = frozenset(("docx", "xlsx", "pptx", "odt", "ods", "odp", "epub"))
_NUMBERS = (b"0", b"-1", b"1", b"255", b"65536", b"2147483648", b"4294967295", b"99999999999999999999", b"1e309")


class Hang(Exception):
    pass


@dataclass
class Outcome:
    kind: str
    files: int = 0
    problems: Counter[str] = field(default_factory=Counter)
    slowest_s: float = 0.0
    #: (seed, what happened)
    defects: list[tuple[str, str]] = field(default_factory=list)
    deaths: int = 0

    def line(self) -> str:
        problems = ", ".join(f"{name or 'none'} {count}" for name, count in self.problems.most_common())
        return (
            f"{self.kind}: {self.files} files, {len(self.defects)} defects, {self.deaths} deaths of the process, "
            f"slowest {self.slowest_s:.2f} s; problems: {problems}"
        )


def mutated(rng: random.Random, kind: str, body: bytes) -> bytes:
    if kind in _ZIPS and rng.random() < 0.6:
        return _edited_member(rng, body)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        body = _edited(rng, body)
    return body


def _edited(rng: random.Random, body: bytes) -> bytes:
    if not body:
        return body
    at, size = rng.randrange(len(body)), rng.choice((1, 2, 4, 16, 64, 1024))
    choice = rng.randrange(8)
    if choice == 0:
        return body[:at]
    if choice == 1:
        return body[:at] + body[at + size :]
    if choice == 2:
        return body[:at] + body[at : at + size] * rng.choice((2, 3, 50)) + body[at:]
    if choice == 3:
        other = rng.randrange(len(body))
        return body[:at] + body[other : other + size] + body[at + size :]
    if choice == 4:
        return body[:at] + rng.randbytes(min(size, 64)) + body[at:]
    if choice == 5:
        return _with_number(rng, body, at)
    changed = bytearray(body)
    for _ in range(rng.choice((1, 3, 10, 40))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _with_number(rng: random.Random, body: bytes, at: int) -> bytes:
    """Replaces the next number of the text."""
    while at < len(body) and not 48 <= body[at] < 58:
        at += 1
    end = at
    while end < len(body) and 48 <= body[end] < 58:
        end += 1
    return body[:at] + rng.choice(_NUMBERS) + body[end:]


def _edited_member(rng: random.Random, body: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(body)) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        names = old.namelist()
        chosen, source = rng.choice(names), rng.choice(names)
        drops = rng.random() < 0.1
        for name in names:
            if name == chosen and drops:
                continue
            content = old.read(source if name == chosen and rng.random() < 0.1 else name)
            new.writestr(name, _edited(rng, content) if name == chosen else content)
    return made.getvalue()


def check(file: FileText) -> None:
    """AssertionError if something about the result cannot be."""
    assert file.problem in get_args(Problem)
    size = len(file.text)
    assert size <= LIMITS.characters
    file.text.encode()
    file.markdown.encode()
    starts = 0
    for part in file.parts:
        assert starts <= part.start <= part.end <= size
        starts = part.start
    for heading in file.headings:
        assert 0 <= heading.start < heading.end <= size
    for table in file.tables:
        assert 0 <= table.start < table.end <= size
        assert not any(label.start >= label.end for label in file.labels_at(table.end - 1, table.end))
    last = 0
    for box in file.boxes:
        assert last <= box.start < box.end <= size, box
        last = box.start
    line, _, packed = to_wire(file).partition(b"\n")
    assert from_wire(line, packed) == file


@contextmanager
def _no_hang() -> Iterator[None]:
    def ring(_number: int, _frame: FrameType | None) -> None:
        raise Hang

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, LIMITS.seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def fuzz(kind: str, count: int, seed: int = 1) -> Outcome:
    outcome = Outcome(kind)
    samples = SAMPLES[kind]()
    process = Documents()
    try:
        for n in range(count):
            name = f"{kind}-{seed}-{n}"
            rng = random.Random(name)
            body = mutated(rng, kind, rng.choice(samples))
            started = time.monotonic()
            try:
                if kind == "pdf":
                    file = _read_aside(process, body, outcome)
                else:
                    with _no_hang():
                        file = read_document(kind, body, LIMITS)
                check(file)
                outcome.problems[file.problem] += 1
            except Exception as error:
                outcome.defects.append((name, repr(error)))
            outcome.slowest_s = max(outcome.slowest_s, time.monotonic() - started)
            outcome.files += 1
    finally:
        process.close()
    return outcome


def _read_aside(process: Documents, body: bytes, outcome: Outcome) -> FileText:
    before = process.process_id
    file = process.read("pdf", body, limits=LIMITS)
    outcome.deaths += before is not None and process.process_id not in (before, None)
    return file


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=5_000)
    parser.add_argument("--kinds", default=",".join(SAMPLES))
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    failed = False
    for kind in given.kinds.split(","):
        outcome = fuzz(kind, given.count, given.seed)
        print(outcome.line(), flush=True)
        for name, what in outcome.defects[:20]:
            print(f"  {name}: {what}")
        failed |= bool(outcome.defects)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"largest memory of this process: {peak} MB")
    sys.exit(failed)


if __name__ == "__main__":
    main()
