"""A long export says how far it is; a short one says nothing."""

from __future__ import annotations

import pytest

from curtsy.cli.export_progress import ExportProgress


def test_a_line_says_every_few_seconds_how_many_pages_were_read(capsys: pytest.CaptureFixture[str]) -> None:
    times = iter([0.0, 1.0, 4.9, 5.0, 6.0, 10.0])
    progress = ExportProgress(lambda: next(times))
    for pages in (200, 980, 1000, 1200, 2000):
        progress(pages)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == ["1,000 pages so far, 200 per second", "2,000 pages so far, 200 per second"]
