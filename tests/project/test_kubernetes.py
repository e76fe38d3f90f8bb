"""deploy/kubernetes: valid by the schemas of Kubernetes, with commands, settings, images and queries that exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from deploy_files import check_command, check_setting

from curtsy import __version__
from curtsy.core.metrics import METRICS
from curtsy.fleet.celery_app import QUEUES

FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"
FILES = {path.name: list(yaml.safe_load_all(path.read_text("utf-8"))) for path in sorted(FOLDER.glob("*.yaml"))}
OBJECTS = [one for name, found in FILES.items() if name not in ("kustomization.yaml", "keda.yaml") for one in found]
DEPLOYMENTS = {one["metadata"]["name"]: one["spec"] for one in OBJECTS if one["kind"] == "Deployment"}
#: the oldest and the newest version that clusters are expected to have
VERSIONS = ("1.28", kubernetes_validate.latest_version())

#: what KEDA's reference says of a ScaledObject with triggers of the type `prometheus`
SCALED_OBJECT: dict[str, Any] = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "apiVersion": {"const": "keda.sh/v1alpha1"},
        "kind": {"const": "ScaledObject"},
        "metadata": {"required": ["name", "namespace"]},
        "spec": {
            "type": "object",
            "additionalProperties": False,
            "required": ["scaleTargetRef", "triggers"],
            "properties": {
                "scaleTargetRef": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["name"],
                    "properties": {"name": {"type": "string"}, "kind": {"type": "string"}},
                },
                "minReplicaCount": {"type": "integer", "minimum": 0},
                "maxReplicaCount": {"type": "integer", "minimum": 1},
                "pollingInterval": {"type": "integer", "minimum": 1},
                "cooldownPeriod": {"type": "integer", "minimum": 0},
                "fallback": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["failureThreshold", "replicas"],
                    "properties": {"failureThreshold": {"type": "integer"}, "replicas": {"type": "integer"}},
                },
                "triggers": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "additionalProperties": False,
                        "required": ["type", "metadata"],
                        "properties": {
                            "type": {"const": "prometheus"},
                            "metricType": {"enum": ["AverageValue", "Value"]},
                            "metadata": {
                                "type": "object",
                                "required": ["serverAddress", "query", "threshold"],
                                "additionalProperties": {"type": "string"},
                            },
                        },
                    },
                },
            },
        },
    },
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("given", OBJECTS, ids=lambda one: f"{one['kind']} {one['metadata']['name']}")
def test_an_object_is_valid(given: dict[str, Any], version: str) -> None:
    kubernetes_validate.validate(given, version, strict=True)


def test_the_validator_finds_a_mistake() -> None:
    wrong = {**OBJECTS[0], "datas": {}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSIONS[-1], strict=True)


def test_every_file_is_applied() -> None:
    (kustomization,) = FILES["kustomization.yaml"]
    assert {*kustomization["resources"], "kustomization.yaml", "keda.yaml"} == set(FILES)
    assert {image["name"]: image["newTag"] for image in kustomization["images"]} == {
        "curtsy": __version__, "curtsy-render": __version__,
    }  # fmt: skip


@pytest.mark.parametrize("name", sorted(DEPLOYMENTS))
def test_a_part_runs_a_command_that_exists_within_bounds(name: str) -> None:
    pod = DEPLOYMENTS[name]["template"]["spec"]
    (container,) = pod["containers"]
    check_command(container["args"])
    assert {"memory"} <= container["resources"]["limits"].keys()
    assert {"cpu", "memory"} <= container["resources"]["requests"].keys()
    assert pod["terminationGracePeriodSeconds"] >= 60
    assert pod["securityContext"]["runAsNonRoot"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    assert {"livenessProbe", "readinessProbe"} & container.keys()
    assert DEPLOYMENTS[name]["selector"]["matchLabels"] == DEPLOYMENTS[name]["template"]["metadata"]["labels"]


def test_there_is_a_worker_for_every_queue() -> None:
    given = [spec["template"]["spec"]["containers"][0]["args"] for spec in DEPLOYMENTS.values()]
    queues = [words[words.index("--queues") + 1] for words in given if words[0] == "worker"]
    assert sorted(",".join(queues).split(",")) == sorted(QUEUES)


def test_the_configuration_names_settings() -> None:
    (config,) = FILES["config.yaml"]
    for name in config["data"]:
        check_setting(name)


def test_every_part_has_a_disruption_budget() -> None:
    budgets = {one["metadata"]["name"]: one["spec"] for one in FILES["disruption.yaml"]}
    assert set(budgets) == set(DEPLOYMENTS)
    for name, budget in budgets.items():
        assert budget["selector"] == DEPLOYMENTS[name]["selector"]


@pytest.mark.parametrize("scaled", FILES["keda.yaml"], ids=lambda one: one["metadata"]["name"])
def test_a_scaled_object_scales_a_worker_by_metrics_that_exist(scaled: dict[str, Any]) -> None:
    jsonschema.validate(scaled, SCALED_OBJECT)
    spec = scaled["spec"]
    assert spec["scaleTargetRef"]["name"] in DEPLOYMENTS
    assert spec["minReplicaCount"] <= spec["fallback"]["replicas"] <= spec["maxReplicaCount"]
    for trigger in spec["triggers"]:
        named = set(re.findall(r"curtsy_\w+", trigger["metadata"]["query"]))
        assert named
        assert named <= set(METRICS)


def test_workers_scale_by_due_hosts_and_by_the_backlog_of_stages() -> None:
    queries = " ".join(
        trigger["metadata"]["query"] for one in FILES["keda.yaml"] for trigger in one["spec"]["triggers"]
    )
    assert {"curtsy_due_hosts", "curtsy_outbox_rows"} <= set(re.findall(r"curtsy_\w+", queries))
