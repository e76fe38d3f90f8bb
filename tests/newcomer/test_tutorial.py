"""Pages of the documentation, run as they are written. tests/cli/test_tutorial.py runs the tutorial."""

from __future__ import annotations

import json
from pathlib import Path

from tests.newcomer.job import Size, web_of
from tests.newcomer.tutorial import TUTORIAL, Took, run, steps

EXAMPLE = """# Title

## 1. Start

Open a **second terminal** and run:

    serve --port 8000

```text
serving 4 sites
```

## 2. Crawl

Go on. Press Ctrl-C
after a few seconds:

    crawl one \\
      two

- `one` is a word.

Do it again:

```sh
crawl
```

The exit code is 1, because it fails.

<!-- not run: it needs a public address -->

    crawl https://example.com/
"""


def test_every_block_of_commands_is_found_with_how_it_is_run() -> None:
    serve, first, second, public = steps(EXAMPLE)
    assert (serve.script, serve.in_background, serve.shown) == ("serve --port 8000", True, ("serving 4 sites",))
    assert (first.script, first.is_interrupted, first.in_background) == ("crawl one \\\n  two", True, False)
    assert (second.script, second.code, second.is_interrupted) == ("crawl\n", 1, False)
    assert [step.is_run for step in (serve, first, second, public)] == [True, True, True, False]


def test_a_wrong_exit_code_and_a_line_that_is_not_printed_are_problems() -> None:
    serve = steps(EXAMPLE)[0]
    assert Took(serve, 0, "serving 9 sites\n").problem is None
    assert "exit code 2, not 0" in (Took(serve, 2, "serving 9 sites\n").problem or "")
    assert "it does not print: serving 4 sites" in (Took(serve, 0, "listening\n").problem or "")
    letters = "serving 1 site\nShow dead letters: curtsy failures list\n"
    assert Took(serve, 1, letters).problem is None
    assert "exit code 1, not 0" in (Took(serve, 1, f"No page was fetched.\n{letters}").problem or "")


MANY_SITES = TUTORIAL.parent / "how-to" / "many-sites.md"


def test_the_guide_from_a_list_of_sites_to_a_table_works_as_it_is_written(tmp_path: Path) -> None:
    size = Size(organizations=7, dead=1, untrusted=1, slow=0, pages=8)
    (tmp_path / "curtsy").mkdir()
    (tmp_path / "curtsy" / "sites.txt").write_text("\n".join(size.sites))
    with web_of(size, tmp_path) as options:
        quick = {"CURTSY_RESOLVE": ",".join(options[1::2]), "CURTSY_DELAY_S": "0", "CURTSY_NEW_HOST_PATIENCE_S": "3"}
        took = list(run(tmp_path, MANY_SITES, quick))
    assert [one.problem for one in took if one.problem] == []
    project = tmp_path / "curtsy" / "orgs"
    made = {path.name for path in project.iterdir()}
    assert made >= {"orgs.xlsx", "urls.csv", "handover.zip", "changes.json"}
    assert json.loads((project / "changes.json").read_text())["counts"]["unchanged"] > 0
    assert "weekly (" in took[-1].printed
