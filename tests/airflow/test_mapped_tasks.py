"""Many mapped tasks on few hosts: they wait in the triggerer, not on workers.

    CURTSY_MAPPED_TASKS=200 make test-airflow ARGS='-s -k mapped'

runs 200 of them, which takes 10 to 20 minutes with 2 cores; by default there are 12.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest
from airflow_stack import Airflow

from curtsy.tinyweb import TinyWeb
from curtsy.tinyweb.politeness_check import judge

if find_spec("airflow") is None:
    pytest.skip("Airflow has an environment of its own: make test-airflow", allow_module_level=True)

TASKS = int(os.environ.get("CURTSY_MAPPED_TASKS", "12"))
HOSTS = [f"org-{n:04d}.tinyweb.test" for n in (4, 10, 11)] if TASKS < 100 else [
    f"org-{n:04d}.tinyweb.test" for n in (4, 8, 9, 10, 11)
]  # fmt: skip
DELAY_S = 8.0
#: of the time in which workers run tasks
MOST_WAITING = 0.05

pytestmark = pytest.mark.timeout(300 + 20 * TASKS)


def test_mapped_tasks_wait_in_the_triggerer_and_not_on_workers(airflow: Airflow, web: TinyWeb) -> None:
    dag, before = "mapped_requests", len(web.requests())
    urls = [f"http://{HOSTS[n % len(HOSTS)]}/" for n in range(TASKS)]
    airflow.trigger(dag, urls=urls)
    worked_s, most, last = 0.0, 0, time.monotonic()

    def ended() -> bool:
        nonlocal worked_s, most, last
        states = Counter(state for (_, task, _), state in airflow.states(dag).items() if task == "fetch")
        now = time.monotonic()
        worked_s, last = worked_s + states["running"] * (now - last), now
        most = max(most, states["deferred"])
        return states["success"] + states["failed"] == TASKS

    began = time.monotonic()
    airflow.until(ended, 60 + 20 * TASKS)
    airflow.until_run(dag)
    notes = [line.split() for line in Path(airflow.environment["CURTSY_NOTES"]).read_text().splitlines()]
    waited_s = sum(float(seconds) for seconds, _ in notes)
    found = Counter(what for _, what in notes)
    print(
        f"\n{TASKS} tasks on {len(HOSTS)} hosts in {time.monotonic() - began:.0f} s: {len(notes)} starts, "
        f"{found['none']} of them deferred, at most {most} at once; workers ran tasks for {worked_s:.1f} s "
        f"and waited for slots for {waited_s:.2f} s ({waited_s / worked_s:.2%})"
    )
    assert airflow.tries(dag) == {1}
    assert found["slot"] == TASKS
    assert found["none"] >= TASKS // 2, "most of them wait, and do so in the triggerer"
    assert most > 1
    assert waited_s < MOST_WAITING * worked_s
    verdict = judge([line for line in web.requests()[before:] if line.host.partition(":")[0] in HOSTS], DELAY_S)
    assert verdict.requests >= TASKS
    assert (verdict.overlaps, verdict.shortfalls) == (0, 0), verdict.summary()
