"""`submit`: hands a crawl in and returns at once; workers do it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from curtsy.cli import seeds, show
from curtsy.cli.crawl_options import (
    Cookies,
    Delay,
    Exclude,
    From,
    Include,
    Lane,
    MaxDepth,
    MaxPages,
    PerHost,
    ProxyPool,
    Render,
    Scope,
    Sitemaps,
    Urls,
    Webhook,
    fields,
)
from curtsy.cli.frontier_access import with_services
from curtsy.cli.options import AsJson, Config, DataDir, ModelKind, RubricName, SchemaName, settings_from
from curtsy.cli.remote import Api, client
from curtsy.control import submit as submitting
from curtsy.control.crawl_request import CrawlRequest, crawl_of
from curtsy.core.errors import UsageError
from curtsy.core.model import new_id
from curtsy.grounding import schema as schemas


def submit(
    urls: Urls = None,
    from_: From = None,
    lane: Lane = "batch",
    scope: Scope = "host",
    include: Include = None,
    exclude: Exclude = None,
    max_pages: MaxPages = None,
    max_depth: MaxDepth = None,
    delay: Delay = None,
    per_host: PerHost = None,
    sitemaps: Sitemaps = True,
    cookies: Cookies = False,
    proxy_pool: ProxyPool = None,
    render: Render = "never",
    schema: SchemaName = None,
    rubric: RubricName = None,
    llm: ModelKind = None,
    webhook: Webhook = None,
    api: Api = None,
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Submit a crawl and return at once.

    The workers of a fleet, or `curtsy crawl --resume`, do the work.
    """
    if not urls and from_ is None:
        raise UsageError("Give at least one URL, or --from FILE. For example: curtsy submit https://example.com/")
    wish = fields(
        lane=lane, scope=scope, include=include or [], exclude=exclude or [], max_pages=max_pages, max_depth=max_depth,
        delay_s=delay, per_host=per_host, sitemaps=sitemaps, cookies=cookies, proxy_pool=proxy_pool, render=render,
        schema=schema, rubric=rubric, llm=llm, webhook=webhook,
    )  # fmt: skip
    given = seeds.read(urls or (), from_)
    if api and schema is not None:
        wish["schema"] = _sent(schema)
    id = _remote(api, wish, given) if api else _local(wish, given, config, data_dir)
    if as_json:
        show.document({"id": id})
    else:
        show.say(id)


def _sent(spec: str) -> str | dict[str, Any]:
    """A name is for the server to know; a file or a model of ours goes there as a JSON Schema."""
    if not spec.endswith(".json") and ":" not in spec:
        return spec
    if spec.endswith(".json") and Path(spec).with_suffix(".toml").exists():
        raise UsageError(f"The hints beside {spec} cannot be sent over an API: put them into the file as `x-curtsy`.")
    found = schemas.load(spec)
    return {"title": found.name, **found.json_schema}


def _remote(api: str, wish: dict[str, Any], seeds: Iterable[str]) -> str:
    return client(api).submit(wish, seeds)


def _local(wish: dict[str, Any], seeds: Iterable[str], config: Path | None, data_dir: Path | None) -> str:
    settings = settings_from(config, data_dir)
    try:
        wanted = CrawlRequest(**wish)
    except ValidationError as error:
        wrong = "; ".join(f"--{str(e['loc'][0]).replace('_', '-')}: {e['msg']}" for e in error.errors())
        raise UsageError(f"{wrong}. `curtsy submit --help` says what can be given.") from None

    return with_services(
        settings, lambda built: submitting.submit(built, crawl_of(wanted, settings, new_id()), seeds)
    ).id
