"""A second process is measured on a second core, with the web server apart."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench.contestants import Result
from bench.cores import on_cores, seconds_apart, split
from bench.measure import run


def test_the_web_server_gets_the_other_cores_and_all_if_none_is_left() -> None:
    assert split({3, 5, 8, 9}, 1) == ({3}, {5, 8, 9})
    assert split({3, 5, 8, 9}, 2) == ({3, 5}, {8, 9})
    assert split({3, 5}, 2) == ({3, 5}, {3, 5})


def test_only_a_web_server_on_the_same_cores_takes_part_of_the_time() -> None:
    assert seconds_apart(4.0, web_cpu_s=0.5, cores=2, every=2) == pytest.approx(3.75)
    assert seconds_apart(4.0, web_cpu_s=0.5, cores=1, every=2) == 4.0
    assert seconds_apart(4.0, web_cpu_s=0.5, cores=2, every=4) == 4.0


def test_a_command_runs_on_its_cores_and_the_benchmark_on_all_again(tmp_path: Path) -> None:
    every = os.sched_getaffinity(0)
    with on_cores(1):
        said = run(["grep", "Cpus_allowed_list", "/proc/self/status"], folder=tmp_path, env=os.environ, timeout_s=30)
    assert said.stdout.split() == ["Cpus_allowed_list:", str(min(every))]
    assert os.sched_getaffinity(0) == every


def test_a_rate_counts_from_start_to_end_unless_the_web_server_is_apart(tmp_path: Path) -> None:
    measured = run(["true"], folder=tmp_path, env=os.environ, timeout_s=30)
    assert Result(pages=100, run=measured, said={}).pages_per_s == 100 / measured.wall_s
    assert Result(pages=100, run=measured, said={}, apart_s=4.0).pages_per_s == 25
