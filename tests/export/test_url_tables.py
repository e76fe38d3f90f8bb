"""The table of all URLs of a crawl that really ran."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from crawl_folder import CrawlFolder
from pyarrow import parquet
from small_site import Say, SmallSite, linking

SITE = {
    "/": linking("/a", "/moved", "/away", "/private", "/gone", title="Home"),
    "/a": linking("/b"),
    "/b": linking(),
    "/moved": Say(b"", 301, (("Location", "/target"),)),
    "/target": linking(),
    "/away": Say(b"", 302, (("Location", "http://elsewhere.test/x"),)),
    "/robots.txt": Say(b"User-agent: *\nDisallow: /private\n", headers=(("Content-Type", "text/plain"),)),
}
HOME = "http://a.small.test"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> CrawlFolder:
    path = tmp_path_factory.mktemp("crawled")
    with SmallSite(SITE) as site:
        made = CrawlFolder(path, resolve=[site.resolve_rule], delay_s=0)
        try:
            made.run("crawl", f"{HOME}/", "http://127.0.0.1:9/", "--allow-private", "127.0.0.0/8", code=1)
        finally:
            made.close()
    return made


def test_every_url_has_its_state_referrer_and_target(folder: CrawlFolder) -> None:
    out = folder.path / "urls.csv"
    done = folder.run("export", "last", "--urls", "--out", str(out))
    with out.open(newline="") as file:
        rows = {row["url"]: row for row in csv.DictReader(file)}
    assert done["urls"] == len(rows)
    told = {url.removeprefix(HOME): (row["state"], row["reason"], row["status"]) for url, row in rows.items()}
    assert told["/"] == told["/a"] == told["/b"] == ("done", "", "200")
    assert told["/moved"] == ("done", "redirect", "301")
    assert told["/gone"] == ("done", "gone", "404")
    assert told["/private"] == ("skipped", "robots", "")
    assert rows[f"{HOME}/moved"]["redirect_target"] == f"{HOME}/target"
    assert rows[f"{HOME}/away"]["redirect_target"] == "http://elsewhere.test/x", "out of scope, but known"
    referrers = {url.removeprefix(HOME): row["referrer"].removeprefix(HOME) for url, row in rows.items()}
    assert (referrers["/"], referrers["/a"], referrers["/b"], referrers["/target"]) == ("", "/", "/a", "/moved")
    assert [rows[f"{HOME}{path}"]["depth"] for path in ("/", "/a", "/b")] == ["0", "1", "2"]
    dead = rows["http://127.0.0.1:9/"]
    assert (dead["state"], dead["reason"], bool(dead["detail"])) == ("failed", "robots_unreachable", True)
    page = rows[f"{HOME}/a"]
    assert page["added_at"] <= page["requested_at"] <= page["settled_at"]
    assert page["page"]


def test_the_columns_are_those_of_the_documentation(folder: CrawlFolder) -> None:
    folder.run("export", "last", "--urls", "--out", str(folder.path / "urls.parquet"))
    schema = parquet.read_schema(folder.path / "urls.parquet")
    text = (Path(__file__).parents[2] / "docs" / "reference" / "output.md").read_text("utf-8")
    rows = text.partition("| column of `urls` |")[2].partition("\n\n")[0]
    documented = [name.strip("`") for line in rows.splitlines()[2:] for name in line.split("|")[1].split()]
    assert [name.rstrip("*").strip("`") for name in documented] == schema.names
    required = {name.rstrip("*").strip("`") for name in documented if name.endswith("*")}
    assert required == {name for name in schema.names if not schema.field(name).nullable}


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/moved", f"It redirects to {HOME}/target, which is a URL of the crawl"),
        ("/away", "It redirects to http://elsewhere.test/x, which was not followed: the scope 'host' has only these"),
        ("/away", "--scope any"),
        ("/b", f"It was found on {HOME}/a."),
        ("/private", "disallows it by the line 'Disallow: /private'"),
    ],
)
def test_explain_says_where_a_url_leads_and_who_named_it(folder: CrawlFolder, path: str, says: str) -> None:
    found = folder.run("explain", f"{HOME}{path}")
    assert says in " ".join(found["why"])


def test_explain_has_the_target_and_the_referrer(folder: CrawlFolder) -> None:
    found = folder.run("explain", f"{HOME}/away")
    assert (found["redirect_target"], found["referrer"]) == ("http://elsewhere.test/x", f"{HOME}/")
