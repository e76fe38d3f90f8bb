"""Files under deploy/ name commands, options, settings and metrics that exist."""

from __future__ import annotations

import configparser
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from deploy_files import check_command, check_setting

from curtsy.core.metrics import HISTOGRAM, METRICS
from curtsy.fleet.celery_app import QUEUES

DEPLOY = Path(__file__).parents[2] / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
OURS = {name: service for name, service in COMPOSE["services"].items() if service["image"].startswith("curtsy")}
UNITS = sorted(DEPLOY.glob("systemd/*.service"))
DASHBOARD: dict[str, Any] = json.loads((DEPLOY / "grafana" / "curtsy.json").read_text("utf-8"))


# Containers


@pytest.mark.parametrize("name", sorted(OURS))
def test_every_service_runs_a_command_that_exists(name: str) -> None:
    service = OURS[name]
    if "entrypoint" in service:
        assert service["entrypoint"] == ["celery", "-A", "curtsy.celery_app", "flower"]
    else:
        check_command(service["command"])
    assert service["stop_grace_period"] == "60s"
    for setting in service["environment"]:
        check_setting(setting)


@pytest.mark.parametrize("name", sorted(COMPOSE["services"]))
def test_every_service_is_watched_and_started_again(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL")
    assert service["restart"] == "unless-stopped"
    for needed in service.get("depends_on", {}):
        assert "healthcheck" in COMPOSE["services"][needed]


@pytest.mark.parametrize("name", sorted(COMPOSE["services"]))
def test_every_service_has_a_pinned_image_and_a_memory_limit(name: str) -> None:
    service = COMPOSE["services"][name]
    assert re.search(r":\d+\.\d+(\.\d+)?(-\w+)?$", service["image"]), service["image"]
    assert re.fullmatch(r"\d+[mg]", service["mem_limit"])


def test_images_are_built_from_pinned_ones() -> None:
    text = (DEPLOY / "Dockerfile").read_text("utf-8")
    bases = re.findall(r"^FROM (\S+)", text, re.MULTILINE)
    assert all(re.search(r":\d+\.\d+\.\d+-", base) for base in bases), bases


def test_there_is_a_worker_for_every_queue_that_is_served() -> None:
    words = [service["command"] for service in OURS.values() if service["command"][0] == "worker"]
    queues = [queue for given in words for queue in given[given.index("--queues") + 1].split(",")]
    assert sorted(queues) == sorted(QUEUES)
    assert OURS["worker-render"]["profiles"] == ["render"], "its image is large: only who asks for it builds it"


def test_valkey_keeps_nothing_and_evicts_nothing() -> None:
    said = COMPOSE["services"]["valkey"]["command"][-1]
    assert "--maxmemory-policy noeviction" in said
    assert "--appendonly no" in said
    assert '--save ""' in said


def test_no_secret_stands_in_the_compose_file() -> None:
    text = (DEPLOY / "compose.yaml").read_text("utf-8")
    for name in ("POSTGRES_PASSWORD", "VALKEY_PASSWORD", "FLOWER_BASIC_AUTH"):
        assert f"${{{name}:?" in text
    assert not re.findall(r"(?i)password: (?!\$\{)", text)


def test_the_image_runs_as_nobody_in_particular() -> None:
    last = (DEPLOY / "Dockerfile").read_text("utf-8").rpartition("\nFROM ")[2]
    assert "\nUSER curtsy\n" in last
    assert "apt-get" not in last
    assert 'ENTRYPOINT ["curtsy"]' in last
    check_command(json.loads(re.findall(r"^CMD (.*)$", last, re.MULTILINE)[0]))
    for name in re.findall(r"(CURTSY_\w+)=", last):
        check_setting(name)


def test_the_image_with_a_browser_is_the_plain_one_and_runs_as_nobody_either() -> None:
    text = (DEPLOY / "Dockerfile.render").read_text("utf-8")
    assert re.findall(r"^FROM (.*)$", text, re.MULTILINE) == ["curtsy"]
    assert re.findall(r"^USER (.*)$", text, re.MULTILINE)[-1] == "curtsy"
    check_command(json.loads(re.findall(r"^CMD (.*)$", text, re.MULTILINE)[0]))


# Units


def read_unit(path: Path) -> configparser.ConfigParser:
    unit = configparser.ConfigParser(interpolation=None, strict=True)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(path.read_text("utf-8"))
    return unit


def test_there_is_a_unit_for_every_part() -> None:
    assert {path.stem for path in UNITS} >= {"curtsy-api", "curtsy-beat", "curtsy-worker", "curtsy-render", "curtsy-up"}


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_a_unit_ends_its_part_gently_and_keeps_it_in_bounds(path: Path) -> None:
    service = read_unit(path)["Service"]
    assert (service["KillMode"], service["TimeoutStopSec"], service["Restart"]) == ("mixed", "60", "always")
    assert service["User"] == "curtsy"
    for option in ("NoNewPrivileges", "PrivateTmp", "ProtectHome"):
        assert service[option] == "yes"
    # A browser keeps its processes apart by namespaces.
    assert service["RestrictNamespaces"] == ("user pid net" if path.stem == "curtsy-render" else "yes")
    assert service["ProtectSystem"] == "strict"
    assert service["CapabilityBoundingSet"] == ""
    program, *words = shlex.split(service["ExecStart"])
    assert program.endswith("/curtsy")
    check_command(words)


@pytest.mark.parametrize("path", sorted((DEPLOY / "systemd").glob("*.service")), ids=lambda path: path.name)
def test_units_name_groups_of_system_calls_that_debian_12_knows(path: Path) -> None:
    """systemd 252 ignores a group that it does not know, and Chromium then dies of the filter."""
    words = read_unit(path)["Service"]["SystemCallFilter"].split()
    assert {word for word in words if word.startswith("@")} == {"@system-service"}
    assert ("seccomp" in words) is (path.stem == "curtsy-render")


def test_the_example_of_the_environment_names_settings() -> None:
    for line in (DEPLOY / "systemd" / "curtsy.env.example").read_text("utf-8").splitlines():
        if not line.startswith("#"):
            check_setting(line.partition("=")[0])


# Watching


def expressions() -> list[str]:
    return [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]


def test_the_dashboard_names_metrics_that_exist_and_all_of_them() -> None:
    series = {f"{name}{end}" for name, (kind, _) in METRICS.items() if kind == HISTOGRAM
            for end in ("_bucket", "_sum", "_count")}  # fmt: skip
    known = series | {name for name, (kind, _) in METRICS.items() if kind != HISTOGRAM}
    named = set(re.findall(r"curtsy_\w+", " ".join(expressions())))
    assert named <= known
    assert {re.sub("_(bucket|sum|count)$", "", name) for name in named} == set(METRICS)


def test_the_dashboard_can_be_laid_out() -> None:
    assert DASHBOARD["uid"] == "curtsy"
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
        if panel["type"] != "row":
            assert panel["targets"]
            assert panel["datasource"]["uid"] == "${datasource}"


def test_prometheus_asks_where_metrics_are() -> None:
    (job,) = yaml.safe_load((DEPLOY / "prometheus.yaml").read_text("utf-8"))["scrape_configs"]
    assert job["metrics_path"] == "/metrics"
    assert job["static_configs"][0]["targets"]
