"""The short form of `python -m tests.fuzz_documents`: no mutated file makes a reader fail, hang or return nonsense."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from document_samples import SAMPLES

from curtsy.content.documents.model import Limits
from curtsy.content.documents.reading import KINDS, read_document


def _harness() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fuzz_documents", Path(__file__).parents[2] / "fuzz_documents.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


HARNESS = _harness()


def test_every_kind_has_samples_that_are_read() -> None:
    assert set(SAMPLES) == set(KINDS)
    for kind, make in SAMPLES.items():
        problems = [read_document(kind, body, Limits()).problem for body in make()]
        assert "" in problems, kind


@pytest.mark.parametrize("kind", SAMPLES)
def test_mutated_files_are_read_or_refused(kind: str) -> None:
    outcome = HARNESS.fuzz(kind, 100, seed=7)
    assert outcome.defects == []
    assert outcome.slowest_s < 30
    assert len(outcome.problems) > (kind not in ("text", "csv")), "mutations must break some files"
