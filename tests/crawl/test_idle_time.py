"""Which seat time counts as waiting, and how long a process waits for work."""

from __future__ import annotations

import pytest

from curtsy.core.errors import SettingsError
from curtsy.core.settings_loading import load
from curtsy.crawl.idle_time import Doing, IdleTime, Patience
from curtsy.fleet.coordination import shards_of, shards_text

WORK, CLOSING, NOTHING = Doing.WORK, Doing.CLOSING, Doing.NOTHING


@pytest.mark.parametrize(
    ("notes", "waiting_s", "closing_s"),
    [
        ([(0.0, WORK), (1.0, WORK)], 0, 0),
        ([(0.0, NOTHING), (0.05, WORK)], 0, 0),  # worth staying for
        ([(0.0, NOTHING), (0.06, WORK)], 0.06, 0),
        ([(0.0, NOTHING), (0.04, NOTHING), (0.08, WORK)], 0.08, 0),  # one gap, looked at twice
        ([(0.0, NOTHING), (0.04, WORK), (0.05, NOTHING), (0.09, WORK)], 0, 0),  # two short ones
        ([(0.0, CLOSING), (0.2, WORK)], 0, 0.2),
        ([(0.0, CLOSING), (0.2, NOTHING), (0.3, WORK)], 0.1, 0.2),
    ],
)
def test_gaps_of_over_50_ms_count(notes: list[tuple[float, Doing]], waiting_s: float, closing_s: float) -> None:
    pauses = IdleTime()
    for at, doing in notes:
        pauses.note(doing, at)
    assert pauses.take(notes[-1][0]) == (pytest.approx(waiting_s), pytest.approx(closing_s))
    assert pauses.take(99.0) == (0, 0)


def test_a_gap_that_continues_is_counted_up_to_now() -> None:
    pauses = IdleTime()
    pauses.note(NOTHING, 1.0)
    assert pauses.take(2.0)[0] == pytest.approx(1.0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"task_soft_limit_s": 80.0},  # shift 30 + fetch 20 + commit 30
        {"task_hard_limit_s": 120.0},
        {"visibility_timeout_s": 150.0},
        {"shift_s": 70.0},
    ],
)
def test_time_limits_of_tasks_that_do_not_fit_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(SettingsError, match="must be less than"):
        load(**wrong)
    load()


@pytest.mark.parametrize(("numbers", "text"), [({0, 1, 2, 5}, "0-2,5"), ({3}, "3"), (set(range(16)), "0-15")])
def test_shards_are_written_as_they_are_read(numbers: set[int], text: str) -> None:
    assert shards_text(numbers) == text
    assert shards_of(text, 16) == numbers


def test_a_process_without_work_asks_soon_and_then_less_often() -> None:
    patience = Patience()
    waits = [patience.wait_s(has_work=False) for _ in range(30)]
    assert waits[0] == 0.01
    assert waits == sorted(waits)
    assert waits[-1] == 0.25
    assert 1 < sum(wait for wait in waits if wait < 0.25) < 2
    assert patience.wait_s(has_work=True) == 0.25, "its own events wake it"
    assert patience.wait_s(has_work=False) == 0.01
