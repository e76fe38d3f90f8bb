"""`init` and the project folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from curtsy.cli import init
from curtsy.control import project
from curtsy.core.errors import UsageError
from curtsy.core.settings_loading import crawl_table, load
from curtsy.grounding import schema as schemas
from curtsy.tinyweb import TinyWeb


def curtsy(folder: Path, *words: str, input: str | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "curtsy.cli", *words]
    return subprocess.run(
        command, cwd=folder, input=input, env={**os.environ, **env}, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip


def test_four_answers_make_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = "a.test https://b.test/x\nname, founded:integer, tags:list\nme@example.org\njob\n"
    done = curtsy(tmp_path, "init", input=answers)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("Next: cd job && curtsy crawl\n")
    job = tmp_path / "job"
    assert sorted(path.name for path in job.iterdir()) == [".gitignore", "curtsy.toml", "schema.json", "seeds.txt"]
    assert (job / "seeds.txt").read_text().splitlines()[1:] == ["https://a.test/", "https://b.test/x"]
    made = schemas.load("schema.json", folder=job)
    assert {leaf.path: leaf.type for leaf in made.leaves} == {
        "/name": "string", "/founded": "integer", "/tags/*": "string"
    }  # fmt: skip
    monkeypatch.chdir(job)
    assert load().contact == "me@example.org"
    assert crawl_table(None) == {"seeds": "seeds.txt", "schema": "schema.json"}
    again = curtsy(tmp_path, "init", "job", "--site", "c.test", "--profile", "news", "--contact", "x@example.org")
    assert (again.returncode, "job already has curtsy.toml and seeds.txt" in again.stderr) == (2, True)


def test_a_wrong_answer_is_asked_again(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "seeds.txt").touch()
    answers = "ftp://a.test/\na.test\nFounded Year\nnews\nme@example.org\ntaken\njob\n"
    done = curtsy(tmp_path, "init", input=answers)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Error: ") == 3
    assert (tmp_path / "job" / "seeds.txt").read_text().splitlines()[1:] == ["https://a.test/"]


def test_a_contact_that_no_header_can_contain_is_refused(tmp_path: Path) -> None:
    given = ("init", "job", "--site", "a.test", "--profile", "news")
    refused = curtsy(tmp_path, *given, "--contact", "me\x01@example.org")
    assert (refused.returncode, "is not valid in a header" in refused.stderr) == (2, True)
    assert not (tmp_path / "job").exists()
    done = curtsy(tmp_path, *given, input="me\x7f@example.org\nme@example.org\n")
    assert (done.returncode, done.stdout.count("Error: ")) == (0, 1)
    assert load(tmp_path / "job" / "curtsy.toml").contact == "me@example.org"


@pytest.mark.parametrize("answers", ["", "a.test\n"])
def test_without_answers_the_options_are_named(tmp_path: Path, answers: str) -> None:
    done = curtsy(tmp_path, "init", input=answers)
    assert done.returncode == 2
    assert all(name in done.stderr for name in ("--site", "--profile", "--contact", "folder"))
    assert "Interrupted" not in done.stderr


def test_a_closed_standard_input_has_no_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UsageError, match="--contact"):
        init.init(sites=["a.test"], profile="news")


def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    (tmp_path / "job").touch()
    done = curtsy(tmp_path, "init", "job", "--site", "a.test", "--profile", "news", "--contact", "me@example.org")
    assert (done.returncode, done.stderr) == (2, "curtsy: job is a file. Use another folder.\n")


@pytest.mark.parametrize("name", list(project.PROFILES))
def test_every_profile_is_a_valid_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    project.write(tmp_path, project.files_of(project.PROFILES[name], ["https://a.test/"], 'x"\n@example.org'))
    monkeypatch.chdir(tmp_path)
    table = tomllib.loads((tmp_path / "curtsy.toml").read_text())
    assert table["contact"] == 'x"\n@example.org', "no answer changes the file around it"
    (tmp_path / "curtsy.toml").write_text((tmp_path / "curtsy.toml").read_text().replace('x\\"\\n@', "x@"))
    assert load().contact == "x@example.org"
    assert "schema" not in table["crawl"] or table["crawl"]["schema"] in schemas.built_in()


@pytest.mark.parametrize("columns", ["", " , ", "Name", "founded:year", "a b", "x:"])
def test_a_wrong_column_is_named(columns: str) -> None:
    with pytest.raises(UsageError, match=r"Invalid column|at least one column"):
        project.schema_of(columns)


def test_a_wrong_option_of_the_table_is_named(tmp_path: Path) -> None:
    (tmp_path / "curtsy.toml").write_text("[crawl]\nsede = 1\n")
    done = curtsy(tmp_path, "crawl", "http://127.0.0.1:9/")
    assert (done.returncode, "[crawl] of the settings file has no option 'sede'" in done.stderr) == (2, True)


def test_a_crawl_in_a_project_needs_no_options(tmp_path: Path) -> None:
    with TinyWeb.start(hosts=1, pages=5, faults=False) as web:
        site = "http://org-0000.tinyweb.test/"
        words = ("--site", site, "--profile", "documentation", "--contact", "me@example.org")
        assert curtsy(tmp_path, "init", ".", *words).returncode == 0
        env = {"CURTSY_RESOLVE": web.resolve_rule, "CURTSY_DELAY_S": "0"}
        done = curtsy(tmp_path, "crawl", **env)
        assert done.returncode == 0, done.stderr
        assert len((tmp_path / "pages.jsonl").read_text().splitlines()) == 5
        other = curtsy(tmp_path, "crawl", f"{site}about", "--max-pages", "1", "--out", "one.jsonl", **env)
        assert other.returncode == 0, other.stderr
        assert len((tmp_path / "one.jsonl").read_text().splitlines()) == 1, "the command line wins"


def test_a_schedule_in_a_project_has_its_seeds_and_options(tmp_path: Path) -> None:
    words = ("--site", "a.test", "--site", "b.test", "--profile", "organizations", "--contact", "me@example.org")
    assert curtsy(tmp_path, "init", ".", *words).returncode == 0
    done = curtsy(tmp_path, "schedules", "add", "weekly", "@weekly", "--max-pages", "9", "--json")
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert made["seeds"] == ["https://a.test/", "https://b.test/"]
    assert {name: made["crawl"][name] for name in ("schema", "max_depth", "max_pages")} == {
        "schema": "organization", "max_depth": 2, "max_pages": 9
    }  # fmt: skip
