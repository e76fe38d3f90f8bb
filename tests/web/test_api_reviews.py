"""Records and their reviews over HTTP: who sees what, what is decided, and nothing that is withheld leaves."""

from __future__ import annotations

import io
import json
import re
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any
from unittest.mock import patch

import contradicting
import orgs
import pytest
import stored
from flask import Flask
from flask.testing import FlaskClient

from curtsy.cli import main
from curtsy.core.model import Crawl, Failure
from curtsy.core.record import Record
from curtsy.core.settings import Settings
from curtsy.records import evaluation, review
from curtsy.records.extraction import Parts
from curtsy.store import failures, keys, records
from curtsy.store.engine import Store
from curtsy.web import auth

HERE = {"Host": "127.0.0.1:8080"}
INVENTED = "Invented Holdings of Nowhere"


@pytest.fixture
def store(app: Flask) -> Store:
    found: Store = app.extensions["curtsy"].store
    return found


@pytest.fixture
def crawl(store: Store, settings: Settings) -> Crawl:
    """A site that is published, one that is held, both with a value that is withheld."""
    segments = stored.folder_of(settings)
    made = orgs.make(store, segments, orgs.bodies([1, 6]))
    orgs.run_all(Parts(settings, store, segments), made)
    withheld = {"path": "/mission", "value": INVENTED, "rung": "llm", "verdict": "unsupported", "evidence": []}
    told = json.dumps([{**withheld, "note": "quote_not_found", "claimed_quote": f"We are {INVENTED}."}])
    with store.begin() as tx:
        tx.exec_driver_sql("UPDATE records SET withheld = '" + told.replace("'", "''") + "'")
    segments.close()
    return made


@pytest.fixture
def held(store: Store, crawl: Crawl) -> Record:
    (found,) = orgs.all_records(store, crawl, "held")
    return found


def key(store: Store, *scopes: str) -> dict[str, str]:
    secret, made = auth.new_key("test", scopes, int(time.time() * 1000), 4_000_000_000_000)
    store.run(keys.create, made)
    return {"Authorization": f"Bearer {secret}"}


def test_only_published_records_are_listed(client: FlaskClient, store: Store, crawl: Crawl, held: Record) -> None:
    answer = client.get(f"/v1/crawls/{crawl.id}/records")
    (shown,) = answer.get_json()["items"]
    assert (shown["subject"], shown["status"], shown["kind"]) == ("site:org-0001.tinyweb.test", "published", "site")
    assert shown["page"] is None
    assert {field["path"] for field in shown["fields"]} >= {"/name", "/contact/email"}
    for field in shown["fields"]:
        assert all(evidence["quote"] for evidence in field["evidence"])
    assert INVENTED not in answer.get_data(as_text=True)
    waiting = client.get(f"/v1/crawls/{crawl.id}/records?status=held")
    assert [one["id"] for one in waiting.get_json()["items"]] == [str(held.n)]
    assert INVENTED not in waiting.get_data(as_text=True)
    report = evaluation.evaluate(store, crawl, evaluation.organization_truth)
    assert (report.exported, report.held, report.unsupported, report.withheld_wrong) == (1, 1, 0, 2)


def test_a_key_that_may_only_read_sees_nothing_that_is_held(
    client: FlaskClient, store: Store, crawl: Crawl, held: Record
) -> None:
    reader, writer = key(store, "read"), key(store, "write")
    for path in (f"/v1/crawls/{crawl.id}/records?status=held", "/v1/reviews", f"/v1/records/{held.n}/review"):
        assert client.get(path, headers=reader).status_code == 403
        assert client.get(path, headers=writer).status_code == 200
    assert client.get(f"/v1/records/{held.n}", headers=reader).status_code == 404
    assert client.get(f"/v1/records/{held.n}", headers=writer).status_code == 200
    assert client.post(f"/v1/records/{held.n}/review", json={"decision": "approve"}, headers=reader).status_code == 403
    assert client.get(f"/v1/crawls/{crawl.id}/records", headers=reader).status_code == 200


def test_the_queue_shows_reviewers_what_is_withheld(client: FlaskClient, crawl: Crawl, held: Record) -> None:
    (item,) = client.get("/v1/reviews").get_json()["items"]
    assert (item["id"], item["crawl"], item["confidence"]["reasons"]) == (str(held.n), crawl.id, ["thin"])
    (withheld,) = item["withheld"]
    assert (withheld["value"], withheld["note"]) == (INVENTED, "quote_not_found")
    assert len(client.get(f"/v1/reviews?crawl={crawl.id}&schema=organization").get_json()["items"]) == 1
    assert client.get("/v1/reviews?schema=page").get_json()["items"] == []
    assert client.get("/v1/reviews?crawl=0000").status_code == 404
    review_case = client.get(f"/v1/records/{held.n}/review").get_json()
    texts = {source["sha256"]: source["text"] for source in review_case["sources"]}
    for field in review_case["fields"]:
        for one in field["evidence"]:
            assert texts[one["sha256"]][one["start"] : one["end"]] == one["quote"]


def test_the_queue_comes_in_pages(client: FlaskClient, store: Store, crawl: Crawl, held: Record) -> None:
    with store.begin() as tx:
        more = [records.add(tx, orgs.another(held, ordinal=i)) for i in range(1, 5)]
    expected = [str(one.n) for one in (held, *more) if one is not None]
    seen: list[str] = []
    cursor = None
    while True:
        page = client.get("/v1/reviews", query_string={"limit": 2, **({"cursor": cursor} if cursor else {})}).get_json()
        seen += [item["id"] for item in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == expected


def test_decisions_say_who_and_are_kept(client: FlaskClient, store: Store, crawl: Crawl, held: Record) -> None:
    writer = key(store, "write")
    path = f"/v1/records/{held.n}/review"
    answer = client.post(path, json={"decision": "reject", "note": "thin"}, headers=writer)
    assert answer.get_json()["status"] == "rejected"
    told = {"decision": "correct", "by": "Ada", "correction": {"/name": "Brightwater"}, "golden": True}
    answer = client.post(path, json=told, headers=writer).get_json()
    assert (answer["status"], answer["data"]["name"]) == ("published", "Brightwater")
    first, second = answer["reviews"]
    name = writer["Authorization"].split("_")[1]
    assert (first["decision"], first["who"], first["note"]) == ("reject", name, "thin")
    assert (second["who"], second["correction"], second["golden"]) == (f"Ada ({name})", {"/name": "Brightwater"}, True)
    listed = client.get(f"/v1/crawls/{crawl.id}/records").get_json()["items"]
    assert sorted(one["id"] for one in listed) == sorted(
        str(one.n) for one in orgs.all_records(store, crawl, "published")
    )
    assert client.get("/v1/reviews").get_json()["items"] == []


def problem(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.get_json()["type"].rpartition(":")[2]


def test_a_decision_that_does_not_fit_is_refused(client: FlaskClient, held: Record) -> None:
    wishes: list[dict[str, Any]] = [
        {"decision": "praise"},
        {"decision": "correct"},
        {"decision": "approve", "correction": {"/name": "x"}},
        {"decision": "correct", "correction": {"/founded_year": "never"}},
        {"decision": "approve", "by": " "},
        {"decision": "approve", "more": 1},
    ]
    for wish in wishes:
        answer = client.post(f"/v1/records/{held.n}/review", json=wish)
        assert problem(answer) == (422, "invalid-request"), wish
    assert client.get(f"/v1/records/{held.n}/review").get_json()["reviews"] == []


def test_a_record_that_is_not_there_is_404(client: FlaskClient) -> None:
    for id in ("999999", "last", "-1", "1e3", "9" * 30):
        for answer in (
            client.get(f"/v1/records/{id}"),
            client.get(f"/v1/records/{id}/review"),
            client.post(f"/v1/records/{id}/review", json={"decision": "approve"}),
        ):
            assert problem(answer) == (404, "no-such-record"), id


def test_a_superseded_version_is_not_decided_of(client: FlaskClient, store: Store, held: Record) -> None:
    with store.begin() as tx:
        records.add(tx, orgs.replace_data(held, name="Another"), again=True)
    assert client.post(f"/v1/records/{held.n}/review", json={"decision": "approve"}).status_code == 409


def test_a_crawl_over_http_names_listed_schemas_or_brings_its_own(apps: Callable[..., Flask]) -> None:
    client = apps(api_schemas=("organization",), api_rubrics=("esg",)).test_client()
    seeds = {"seeds": ["https://a.test/"]}
    own = {"title": "Shop", "type": "object", "properties": {"name": {"type": "string"}}}
    named = {"schema": "organization", "rubric": "esg", "llm": "none"}
    for wish in (named, {"schema": own}):
        answer = client.post("/v1/crawls", json={**seeds, **wish})
        assert answer.status_code == 202, answer.get_data(as_text=True)
    found = client.get("/v1/crawls/last").get_json()["options"]
    assert (found["schema"], found["rubric"]) == ("Shop", None)
    refused = [
        {"schema": "page"},
        {"schema": "os:system"},
        {"schema": "/etc/passwd.json"},
        {"schema": {"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}}},
        {"schema": "organization", "rubric": "other"},
        {"schema": "organization", "llm": "local"},
        {"rubric": "esg"},
    ]
    for wish in refused:
        answer = client.post("/v1/crawls", json={**seeds, **wish})
        assert answer.status_code == 422, wish


@pytest.fixture
def command(app: Flask, settings: Settings) -> Callable[..., Any]:
    """Runs a command against the same store; its JSON document."""

    def run(*words: str, code: int = 0) -> Any:
        said = io.StringIO()
        given = ["curtsy", *words, "--data-dir", str(settings.data_dir), "--json"]
        environment = {"CURTSY_STORE_URL": settings.effective_store_url}
        patched = (patch.object(sys, "argv", given), patch.dict("os.environ", environment))
        with patched[0], patched[1], redirect_stdout(said), pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == code, said.getvalue()
        return json.loads(said.getvalue()) if said.getvalue() else None

    return run


def test_commands_do_the_same(command: Callable[..., Any], store: Store, crawl: Crawl, held: Record) -> None:
    (waiting,) = command("review", "list")["records"]
    assert (waiting["id"], waiting["withheld"][0]["value"]) == (str(held.n), INVENTED)
    assert command("review", "show", str(held.n))["crawl"] == crawl.id
    (listed,) = command("records", crawl.id)["records"]
    assert INVENTED not in json.dumps(listed)
    assert [one["id"] for one in command("records", crawl.id, "--held")["records"]] == [str(held.n)]
    made = command("review", "correct", str(held.n), "--set", "/name=Brightwater", "--by", "Ada", "--note", "by hand")
    assert (made["status"], made["reviews"][0]["who"], made["data"]["name"]) == ("published", "Ada", "Brightwater")
    assert command("review", "reject", str(held.n), "--by", "Ada")["status"] == "rejected"
    assert command("review", "approve", str(held.n), "--by", "Ada", "--golden")["status"] == "published"
    assert len(command("records", crawl.id)["records"]) == 2
    command("review", "approve", "99999", code=2)
    command("review", "correct", str(held.n), "--set", "nothing", code=2)
    command("records", "--held", "--status", "rejected", code=2)


def test_a_decision_from_the_dashboard_is_kept_only_if_its_crawl_is_there(
    client: FlaskClient, store: Store, held: Record
) -> None:
    page = client.get(f"/review/{held.n}", headers=HERE)
    (token,) = set(re.findall(r'name="csrf" value="([0-9a-f]{64})"', page.text))
    given = {"csrf": token, "decision": "approve", "crawl": "ffff"}
    assert client.post(f"/review/{held.n}", data=given, headers=HERE).status_code == 404
    assert review.review_case(store, held.n).history == ()
    assert client.post(f"/review/{held.n}", data=given | {"crawl": ""}, headers=HERE).status_code == 303
    assert [one.decision for one in review.review_case(store, held.n).history] == ["approve"]


def test_dead_letters_of_stages_are_counted_over_http_and_on_the_crawls_page(
    client: FlaskClient, store: Store, crawl: Crawl
) -> None:
    letter = Failure(
        id="", crawl=crawl.n, fp=b"site:org-0001.tinyweb.test", url="http://org-0001.tinyweb.test/",
        host="org-0001.tinyweb.test", stage="extract", cause="llm_refused", attempts=1, fence=-1, at_ms=1,
        request_id="r",
    )  # fmt: skip
    assert client.get(f"/v1/crawls/{crawl.id}", headers=HERE).get_json()["counts"]["failed_stages"] == {}
    store.run(failures.insert, [letter])
    assert client.get(f"/v1/crawls/{crawl.id}", headers=HERE).get_json()["counts"]["failed_stages"] == {"extract": 1}
    assert "1 more in extract" in client.get(f"/crawls/{crawl.id}", headers=HERE).text


def test_a_correction_is_undone_with_all_its_effects(client: FlaskClient, store: Store, held: Record) -> None:
    before = client.get(f"/v1/records/{held.n}/review").get_json()
    body = {"decision": "correct", "correction": {"/mission": None}}
    assert client.post(f"/v1/records/{held.n}/review", json=body).get_json()["status"] == "published"
    after = client.post(f"/v1/records/{held.n}/review/undo", json={"by": "Bob"}).get_json()
    assert [one["decision"] for one in after["reviews"]] == ["correct", "undo"]
    assert after["reviews"][1]["who"] == "Bob (this machine)"
    assert {**after, "reviews": []} == before
    assert client.post(f"/v1/records/{held.n}/review/undo", json={}).status_code == 409


def test_an_unknown_decision_about_many_cannot_be_undone(client: FlaskClient, held: Record) -> None:
    unknown = client.post("/v1/reviews/undo", json={"batch": "unknown"})
    assert problem(unknown) == (404, "no-such-decision")
    made = client.post("/v1/reviews/decide", json={"decision": "reject", "ids": [held.n]}).get_json()
    for refused in (0, 1):
        again = client.post("/v1/reviews/undo", json={"batch": made["batch"]})
        assert (again.status_code, len(again.get_json()["refused"])) == (200, refused)


def test_many_are_decided_in_the_dashboard_after_a_preview_and_undone(
    client: FlaskClient, store: Store, held: Record
) -> None:
    page = client.get("/review?reason=thin", headers=HERE).text
    csrf = re.search(r'name="csrf" value="([0-9a-f]{64})"', page)
    assert csrf
    form = {"csrf": csrf[1], "decision": "reject", "ids": str(held.n)}
    preview = client.post("/review/many", data=form, headers=HERE)
    assert (preview.status_code, "Reject 1 record?" in preview.text) == (200, True)
    assert client.get(f"/v1/records/{held.n}/review").get_json()["status"] == "held"
    assert client.post("/review/many", data={**form, "ids": "999"}, headers=HERE).status_code == 422
    done = client.post("/review/many", data={**form, "really": "yes"}, headers=HERE)
    assert client.get(f"/v1/records/{held.n}/review").get_json()["status"] == "rejected"
    after = client.get(done.headers["Location"], headers=HERE).text
    batch = re.search(r'name="batch" value="([0-9a-f-]{36})"', after)
    assert batch
    assert "Rejected: 1 record." in after
    client.post("/review/undo", data={"csrf": csrf[1], "batch": batch[1]}, headers=HERE)
    assert client.get(f"/v1/records/{held.n}/review").get_json()["status"] == "held"
    hostile = client.get("/review?host=%22%3E%3Cscript%3Ex&batch=%22%3E%3Cscript%3Ex", headers=HERE)
    assert "<script>x" not in hostile.text
    paths = [one["path"] for one in client.get("/v1/audit").get_json()["items"]]
    assert paths[:1] == ["/review/undo"]


def test_a_contradicted_field_is_listed_and_one_of_its_values_chosen(
    client: FlaskClient, store: Store, settings: Settings
) -> None:
    segments = stored.folder_of(settings)
    crawl = orgs.make(store, segments, contradicting.pages())
    orgs.run_all(Parts(settings, store, segments), crawl)
    segments.close()
    (shown,) = client.get(f"/v1/crawls/{crawl.id}/records", headers=key(store, "read")).get_json()["items"]
    assert (shown["status"], shown["contradicted"]) == ("published", ["/contact/phone"])
    assert "phone" not in str(shown["data"])
    writer = key(store, "write")
    (item,) = client.get("/v1/reviews?needs=field", headers=writer).get_json()["items"]
    assert client.get("/v1/reviews?needs=record", headers=writer).get_json()["items"] == []
    assert client.get("/v1/reviews?needs=phone", headers=writer).status_code == 422
    assert [one["value"] for one in item["withheld"]] == [contradicting.HOME_PHONE, contradicting.ABOUT_PHONE]
    assert [one["evidence"][0]["url"] for one in item["withheld"]] == [url for url, _ in contradicting.pages()]

    path = f"/v1/records/{item['id']}/review"
    for wrong in ({"decision": "choose"}, {"decision": "approve", "choice": {}}):
        assert client.post(path, json=wrong, headers=writer).status_code == 422
    refused = client.post(path, json={"decision": "choose", "choice": {"/contact/phone": "1"}}, headers=writer)
    assert (refused.status_code, "is not one of" in refused.get_json()["detail"]) == (422, True)
    choice = {"/contact/phone": contradicting.ABOUT_PHONE}
    done = client.post(path, json={"decision": "choose", "choice": choice}, headers=writer).get_json()
    assert (done["status"], done["contradicted"]) == ("published", [])
    assert done["data"]["contact"]["phone"] == contradicting.ABOUT_PHONE
    assert (done["reviews"][0]["decision"], done["reviews"][0]["correction"]) == ("choose", choice)
    assert client.get("/v1/reviews", headers=writer).get_json()["items"] == []
    undone = client.post(f"{path}/undo", json={}, headers=writer).get_json()
    assert (undone["contradicted"], len(undone["withheld"])) == (["/contact/phone"], 2)
