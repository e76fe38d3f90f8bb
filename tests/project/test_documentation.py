"""A setting, command or option that is not documented fails here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from curtsy.cli.app import app
from curtsy.cli.commands import LazyCommand
from curtsy.core.settings import HostRule, Settings

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]
#: documented once, at the top of docs/reference/commands.md
SHARED = {"--config", "--data-dir", "--json", "--wide", "--api", "--help", "-h", "--version"}


def commands() -> Iterator[tuple[str, Any]]:
    def walk(name: str, command: Any) -> Iterator[tuple[str, Any]]:
        if isinstance(command, LazyCommand):
            if not command.hidden:
                yield from walk(name, command.load())
        elif hasattr(command, "commands"):
            for sub in command.commands.values():
                yield from walk(f"{name} {sub.name}", sub)
        elif not command.hidden:
            yield name, command

    yield from walk("curtsy", app)


def section(name: str) -> str:
    """The part of docs/reference/commands.md under the command's heading."""
    text = (DOCS / "reference" / "commands.md").read_text("utf-8")
    found = re.search(rf"^## {re.escape(name)}$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"docs/reference/commands.md has no section '## {name}'"
    return found[1]


@pytest.mark.parametrize("name", [*Settings.model_fields, *HostRule.model_fields])
def test_every_setting_is_documented(name: str) -> None:
    assert f"`{name}`" in (DOCS / "reference" / "settings.md").read_text("utf-8")


def test_every_documented_setting_exists() -> None:
    documented = re.findall(r"^\| `(\w+)` \|", (DOCS / "reference" / "settings.md").read_text("utf-8"), re.MULTILINE)
    assert set(documented) == set(Settings.model_fields)


@pytest.mark.parametrize(
    ("name", "command"), list(commands()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_command_and_option_is_documented(name: str, command: Any) -> None:
    text = section(name)
    for parameter in command.params:
        for option in (*parameter.opts, *parameter.secondary_opts):
            if option.startswith("-") and option not in SHARED:
                assert f"`{option}" in text, f"{name} {option} is missing in docs/reference/commands.md"
    assert command.help, f"{name} does not say what it does"


def test_the_table_of_commands_says_what_their_own_help_says() -> None:
    for command in app.commands.values():
        loaded = command.load()
        assert (loaded.help or "").partition("\n")[0] == command.help or command.hidden, command.name


def test_every_documented_command_exists() -> None:
    documented = re.findall(r"^## (curtsy .+)$", (DOCS / "reference" / "commands.md").read_text("utf-8"), re.MULTILINE)
    assert documented
    assert set(documented) == {name for name, _ in commands()}


def test_every_shared_option_is_documented() -> None:
    head = (DOCS / "reference" / "commands.md").read_text("utf-8").partition("\n## ")[0]
    assert all(f"`{option}" in head for option in SHARED)


#: a command in a code block, between backticks, or after `&&`
_COMMAND = re.compile(r"(?:^    |`|&& )curtsy ([a-z][^`\n#|]*)", re.MULTILINE)


@pytest.mark.parametrize(
    "path", [path for path in DOCUMENTS if "decisions" not in path.parts and path.name != "CHANGELOG.md"],
    ids=lambda path: str(path.relative_to(ROOT)),
)  # fmt: skip
def test_every_command_line_in_the_documentation_is_valid(path: Path) -> None:
    known = {tuple(name.split()[1:]): command for name, command in commands()}
    groups = {name[:1] for name in known if len(name) == 2}
    for line in _COMMAND.findall(path.read_text("utf-8").replace("\\\n", " ")):
        words = line.split()
        command = known.get(tuple(words[:2])) or known.get(tuple(words[:1]))
        assert command or tuple(words[:1]) in groups, f"`curtsy {line}`: there is no such command"
        if command and words[0] != "tinyweb":  # it has its own parser
            options = {*SHARED, *(o for one in command.params for o in (*one.opts, *one.secondary_opts))}
            used = {word.split("=")[0].strip("[](),;.") for word in words if word.lstrip("[").startswith("--")}
            assert used <= options, f"`curtsy {line}`: {used - options}"


@pytest.mark.parametrize("code", ["0", "1", "2", "3", "4", "70"])
def test_every_exit_code_is_documented(code: str) -> None:
    assert re.search(rf"\b{code} [a-z]", (DOCS / "reference" / "commands.md").read_text("utf-8"))


def anchors(path: Path) -> set[str]:
    """The anchors that GitHub makes of a document's headings."""
    headings = re.findall(
        r"^#+ (.+)$", re.sub(r"```.*?```", "", path.read_text("utf-8"), flags=re.DOTALL), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(path: Path) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text("utf-8"), flags=re.DOTALL)
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)", text):
        if not target.startswith(("http:", "https:")):
            there = (path.parent / target).resolve() if target else path
            assert there.exists(), f"{path.name}: {target}"
            assert not anchor or anchor in anchors(there), f"{path.name}: {target}#{anchor}"


RECORDS = sorted((DOCS / "decisions").glob("[0-9]*.md"))


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_every_decision_has_its_parts_and_a_line_in_the_index(path: Path) -> None:
    text = path.read_text("utf-8")
    assert text.startswith(f"# {int(path.name[:4])}. "), "the first line is `# <number>. <title>`"
    for part in ("Question", "Choice", "Cost"):
        assert f"\n**{part}.** " in text or f"\n**{part}.**\n" in text, f"{path.name} has no part {part}"
    title = text.partition("\n")[0].removeprefix("# ")
    index = " ".join((DOCS / "decisions" / "README.md").read_text("utf-8").split())
    assert f"[{title}]({path.name})" in index, f"docs/decisions/README.md does not list {path.name} as '{title}'"


def test_every_test_and_module_that_the_contributors_pages_name_exists() -> None:
    for page in ("architecture.md", "durability.md", "frontier.md", "explanation/processes.md"):
        text = (DOCS / page).read_text("utf-8")
        for path in re.findall(r"`(tests/[\w/]+\.py)`", text):
            assert (ROOT / path).exists(), path
        for path in re.findall(r"`((?:[a-z]+/)+\w+\.(?:py|lua))`", text):
            assert path.startswith("tests/") or (ROOT / "src" / "curtsy" / path).exists(), path
    text = (DOCS / "durability.md").read_text("utf-8")
    source = "".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    for name in re.findall(r"`(test_\w+)`", text):
        assert f"def {name}(" in source, name


def test_the_path_of_a_url_passes_each_folder_once_and_names_files_that_exist() -> None:
    text = (DOCS / "architecture.md").read_text("utf-8")
    assert len(text.split()) <= 2000
    path = text.partition("## The path of a URL")[2].partition("\n## ")[0]
    step = r"^(?:\d+\.|-) \*\*`"
    steps = re.findall(rf"{step}(\w+)/`\*\*(.*?)(?={step}|\Z)", path, re.MULTILINE | re.DOTALL)
    folders = [folder for folder, _ in steps]
    files = [f"{folder}/{name}" for folder, step in steps for name in re.findall(r"`(\w+\.py)`", step)]
    assert len(set(folders)) == len(folders) > 5
    assert 10 < len(set(files)) <= 35
    assert [name for name in files if not (ROOT / "src" / "curtsy" / name).exists()] == []


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/tutorial.md", "docs/architecture.md"])
def test_the_first_pages_have_short_sentences(page: str) -> None:
    text = re.sub(r"```.*?```", "\n\n", (ROOT / page).read_text("utf-8"), flags=re.DOTALL)
    text = re.sub(r"^(?: {4}|#|\||!\[).*$", "", text, flags=re.MULTILINE)  # code, headings, tables, images
    text = re.sub(r"^\s*(?:[-*]|\d+\.)\s+", "\n\n", text, flags=re.MULTILINE)  # each list item is a paragraph
    text = re.sub(r"`[^`]*`", "X", re.sub(r"\]\([^)]*\)", "]", text))
    sentences = re.split(r"\n\s*\n|(?<=[.?!:])\**\s+(?=[A-Z\[*])", text)
    assert [" ".join(said.split()) for said in sentences if len(said.split()) > 25] == []


def glossary(page: str, heading: str) -> set[str]:
    text = (DOCS / page).read_text("utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| ([A-Za-z ]+) \|", text, re.MULTILINE)) - {"term"}


def test_the_glossary_explains_the_terms_of_the_overview() -> None:
    overview = (DOCS / "architecture.md").read_text("utf-8").partition("## Glossary")[0]
    terms, later = glossary("architecture.md", "Glossary"), glossary("frontier.md", "Terms")
    assert min(len(terms), len(later)) > 10
    assert {term for term in terms if term not in overview} == set()
    # what only contributors to the frontier need is explained there, and not used before
    assert {term for term in later if f"{term} " in overview} == set()


def test_every_file_to_start_with_exists() -> None:
    text = (DOCS / "architecture.md").read_text("utf-8").partition("## The folders")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)/`(?:, `\w+/`)* \| [^|]+ \| ([^|]+) \|", text, re.MULTILINE)
    assert len(rows) > 15
    for folder, files in rows:
        for name in re.findall(r"`([\w/.]+)`", files):
            there = ROOT / "src" / "curtsy"
            assert (there / folder / name).exists() or (there / name).exists(), f"{folder}/{name}"


def test_every_metric_is_documented() -> None:
    named = set(re.findall(r'"(curtsy_[a-z_]+)"', (ROOT / "src/curtsy/core/metrics.py").read_text("utf-8")))
    assert named
    assert {name for name in named if f"`{name}`" not in (DOCS / "reference/metrics.md").read_text("utf-8")} == set()


def test_every_moved_module_is_where_the_table_says() -> None:
    text = (DOCS / "reference" / "module-moves.md").read_text("utf-8")
    moved = re.findall(r"^\| `\S+` \| `(curtsy[\w.]*)`", text, re.MULTILINE)
    assert len(moved) > 100
    places = [ROOT / "src" / name.replace(".", "/") for name in moved]
    assert [path.name for path in places if not (path.is_dir() or path.with_suffix(".py").exists())] == []
