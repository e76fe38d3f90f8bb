"""A schema is entered in the form of a new crawl and tested on a stored page: values with their quotes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import stored
from flask import Flask
from flask.testing import FlaskClient

from curtsy.control.crawl_request import CrawlRequest
from curtsy.core.settings import Settings
from curtsy.core.settings_loading import load
from curtsy.grounding import schema
from curtsy.web.factory import create_app

HOST = {"Host": "127.0.0.1:8080"}
URL = "https://a.test/"
BODY = (
    b'<title>Mill</title><script type="application/ld+json">{"@type": "Organization", "name": "Alder <b>Mill</b>", '
    b'"email": "mail@a.test"}</script><h1>Alder Mill</h1><p>Write to mail@a.test. Alder Mill was founded in 1954.</p>'
)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load(data_dir=tmp_path / "data", api_renderers=("playwright",))


@pytest.fixture
def app(settings: Settings) -> Iterator[Flask]:
    made = create_app(settings)
    with closing(stored.folder_of(settings)) as segments:
        store = made.extensions["curtsy"].store
        stored.add_pages(store, segments, stored.crawl(store), [(URL, BODY)])
    yield made
    made.extensions["curtsy"].close()


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


def post(client: FlaskClient, path: str, **given: str) -> tuple[int, str]:
    csrf = re.search(r'name="csrf" value="([0-9a-f]{64})"', client.get("/new", headers=HOST).text)
    assert csrf
    answer = client.post(path, data={"csrf": csrf[1], "seeds": URL, **given}, headers=HOST)
    return answer.status_code, answer.text


SCHEMAS = [
    "email, name, founded:integer",
    json.dumps({"title": "mill", "type": "object", "properties": {"email": {"type": "string", "format": "email"}}}),
]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_the_values_of_a_stored_page_are_shown_with_their_quotes(client: FlaskClient, schema: str) -> None:
    status, text = post(client, "/new/test", schema_text=schema, test_page=URL)
    assert status == 200, text
    assert "<code>/email</code>" in text
    assert "<q><bdi>mail@a.test</bdi></q>" in text
    assert "https://a.test/</textarea>" in text  # the form keeps its content
    assert client.get("/v1/crawls", headers=HOST).get_json()["items"][0]["state"] == "finished", "nothing was created"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"schema_text": "{", "test_page": URL}, "not valid JSON"),
        ({"schema_text": "Name!", "test_page": URL}, "Invalid column"),
        ({"schema_text": "name", "test_page": "https://b.test/"}, "Name a stored page"),
        ({"schema_text": "name"}, "Name a stored page"),
        ({"test_page": URL}, "Choose a schema"),
        ({"schema": "os:system", "test_page": URL}, "offers no such schema"),
        ({"schema": "/etc/passwd.json", "test_page": URL}, "offers no such schema"),
        ({"schema_text": '{"$ref": "https://b.test/"}', "test_page": URL}, "schema"),
    ],
)
def test_what_cannot_be_tested_is_told_in_the_form(client: FlaskClient, given: dict[str, str], says: str) -> None:
    status, text = post(client, "/new/test", **given)
    assert (status, says in text) == (422, True), text
    assert 'role="alert"' in text


def test_a_crawl_is_made_with_the_schema_of_the_form_and_cloned_with_it(client: FlaskClient) -> None:
    assert post(client, "/new", schema_text="name, founded:integer", name="Mills")[0] == 303
    made = client.get("/v1/crawls", headers=HOST).get_json()["items"][0]
    assert client.get(f"/v1/crawls/{made['id']}").get_json()["options"]["schema"] == "columns"
    copy = client.get(f"/new?clone={made['id']}", headers=HOST).text
    assert "&#34;founded&#34;" in copy


def test_the_form_configures_the_job_that_the_command_line_would(client: FlaskClient) -> None:
    given = {
        "name": "Mills", "tags": "uk mills", "scope": "domain", "max_pages": "50", "max_depth": "2", "delay_s": "2.5",
        "schema": "organization", "rubric": "esg", "render": "auto", "llm": "none", "exclude": "/login",
    }  # fmt: skip
    assert post(client, "/new", **given)[0] == 303
    made = client.get("/v1/crawls", headers=HOST).get_json()["items"][0]
    assert (made["name"], made["tags"]) == ("Mills", ["mills", "uk"])
    options = client.get(f"/v1/crawls/{made['id']}").get_json()["options"]
    expected = {
        "scope": "domain", "max_pages": 50, "max_depth": 2, "delay_s": 2.5, "schema": "organization", "rubric": "esg",
        "render": "auto", "exclude": ["/login"],
    }  # fmt: skip
    assert {name: options[name] for name in expected} == expected


def test_the_form_offers_every_option_of_a_crawl(client: FlaskClient) -> None:
    offered = set(re.findall(r'name="([a-z_]+)"', client.get("/new", headers=HOST).text))
    # A pool of proxies must be in the settings; for the others, there is the API.
    names = {field.alias or name for name, field in CrawlRequest.model_fields.items()}
    assert names - offered == {"proxy_pool", "verify", "judge_model", "webhook_secret"}


def test_the_form_offers_every_built_in_schema(client: FlaskClient) -> None:
    offered = re.findall(r"<option>([a-z]+)</option>", client.get("/new", headers=HOST).text)
    assert set(schema.built_in()) <= set(offered)
