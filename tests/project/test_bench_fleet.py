"""The benchmark of a fleet, in its short form: two workers with four processes each, judged by the server's log."""

from __future__ import annotations

from bench import fleet


def test_two_workers_are_polite_and_what_they_took_is_measured() -> None:
    """How well it went is judged in full size, on a machine that does nothing else."""
    found = fleet.run(hosts=30, pages=10)
    assert found.pages == 300
    assert found.requests == 330
    assert found.violations == 0
    assert found.ideal_s == 11
    assert found.ended_after_first_s > 0
    assert 0 <= found.waiting_s < found.seat_s
