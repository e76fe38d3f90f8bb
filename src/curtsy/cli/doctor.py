"""`doctor`: checks the installation and says how to repair it."""

from __future__ import annotations

import asyncio
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import metadata, util
from pathlib import Path

import typer

from curtsy import __version__
from curtsy.cli import UNAVAILABLE, show
from curtsy.cli.options import LocalOptions
from curtsy.content.page_scan import reader_name
from curtsy.control.seeds import has_placeholder
from curtsy.core.errors import CurtsyError, Damaged, Unavailable
from curtsy.core.settings import Settings
from curtsy.export.page_rows import segments_of
from curtsy.extract.endpoint import CallOptions, call, models
from curtsy.extract.llm import endpoint_of
from curtsy.fetch import chromium
from curtsy.fetch.chromium import Chromium
from curtsy.fleet.coordination import Fleet, beat_problem
from curtsy.frontier.frontier import Frontier
from curtsy.services.local_model import LocalModel, find_weights, what_is_missing
from curtsy.services.valkey import EmbeddedValkey, find_server
from curtsy.store.engine import Store
from curtsy.store.pages import committed_so_far

#: a queue in play: list, ring, host hash, due entry; measured on 100,000 hosts: 580 (Valkey 9) to 890 (Redis 7)
QUEUE_BYTES = 900
#: a listed URL
LISTED_BYTES = 60
#: an empty server
SERVER_BYTES = 8_000_000


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report. An optional part that is missing has no `ok`."""

    what: str
    ok: bool | None
    found: str
    repair: str = ""


def doctor(shared: LocalOptions) -> None:
    """Check the installation and say how to repair it."""

    settings = shared.settings()
    checks = list(_checks(settings))
    if shared.as_json:
        documents = [asdict(check) | {"mend": check.repair} for check in checks]  # `mend` is the old name of `repair`
        show.document({"ok": all(check.ok is not False for check in checks), "checks": documents})
    else:
        for check in checks:
            mark = {True: "ok  ", False: "FAIL", None: "-   "}[check.ok]
            show.say(f"{mark} {check.what:<18} {check.found}")
            if check.repair and check.ok is not True:
                show.say(f"     {'':<18} {check.repair}")
    if any(check.ok is False for check in checks):
        raise typer.Exit(UNAVAILABLE)


def _checks(settings: Settings) -> Iterator[Check]:

    yield Check("curtsy", True, __version__)
    enough = sys.version_info >= (3, 11)
    yield Check("python", enough, platform.python_version(), "Install Python 3.11 or newer.")
    yield _curl()
    yield _page_reader()
    for what, look in (("data folder", _data_dir), ("frontier", _frontier), ("store", _store), ("segments", _segments)):
        yield _guarded(what, look, settings)
    yield from _beat(settings)
    yield from _loose_mode(settings)
    yield from _proxies(settings)
    yield _model(settings)
    yield _contact(settings)
    yield Check("frontier memory", True, memory_bound(settings))
    yield from _optional(settings)


def _guarded(what: str, look: Callable[[Settings], str], settings: Settings) -> Check:

    try:
        return Check(what, True, look(settings))
    except CurtsyError as error:
        return Check(what, False, "not usable", str(error))
    except OSError as error:
        return Check(what, False, str(error), "Check that the folder exists, belongs to you and has free space.")
    except Exception as error:  # a broken part may raise anything; the other checks must still run
        return Check(what, False, "not usable", f"{type(error).__name__}: {error}")


def _curl() -> Check:
    try:
        import curtsy.fetch.http  # noqa: F401
    except ImportError as error:
        return Check("libcurl", False, str(error), "pip install pycurl (its wheel brings libcurl)")
    return Check("libcurl", True, f"pycurl {metadata.version('pycurl')}")


def _page_reader() -> Check:
    if reader_name() == "scanner":
        return Check("page reader", True, "compiled scanner")
    repair = "Pages cost more CPU. Install a C compiler and Python's headers, then install Curtsy again."
    return Check("page reader", None, "HTML parser only (no compiled scanner)", repair)


def _data_dir(settings: Settings) -> str:
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    probe = settings.data_dir / ".doctor"
    probe.write_bytes(b"")
    probe.unlink()
    free = shutil.disk_usage(settings.data_dir).free
    return f"{settings.data_dir.resolve()}, {free / 1e9:,.1f} GB free"


def _loose_mode(settings: Settings) -> Iterator[Check]:
    """A warning if other users can read the folder: it holds page bodies, and a database with secrets."""
    if settings.data_dir.is_dir() and (mode := settings.data_dir.stat().st_mode & 0o777) & 0o077:
        repair = f"Other users can enter it. Run: chmod 700 {settings.data_dir.resolve()}"
        yield Check("folder mode", None, f"{mode:04o}", repair)


def _beat(settings: Settings) -> Iterator[Check]:
    """Of a fleet: whether a dispatcher runs. `curtsy crawl` needs none."""
    if settings.frontier_url is None:
        return
    try:
        problem = beat_problem(asyncio.run(_beat_age_s(settings, settings.frontier_url)))
    except CurtsyError:
        return  # the check of the frontier says why
    yield Check("beat", True if problem is None else None, problem or "runs", "Start it with: curtsy beat")


async def _beat_age_s(settings: Settings, url: str) -> float | None:
    fleet = Fleet(url, settings)
    try:
        return await fleet.beat_age_s()
    finally:
        await fleet.close()


def _proxies(settings: Settings) -> Iterator[Check]:
    for pool, urls in settings.proxies.items():
        if pool in settings.proxy_dns:
            found = f"pool {pool!r}, {len(urls)}; they resolve names (proxy_dns)"
            yield Check("proxies", None, found, "A name that resolves to a private address is not refused here.")
        else:
            yield Check("proxies", True, f"pool {pool!r}, {len(urls)}; names are resolved and checked here")


def _frontier(settings: Settings) -> str:
    if settings.frontier_url is not None:
        return asyncio.run(_reach(settings, settings.frontier_url))

    with EmbeddedValkey.enter(settings.data_dir) as embedded:
        return f"embedded, {find_server()}, pid {embedded.pid} on {embedded.socket}"


async def _reach(settings: Settings, url: str) -> str:

    frontier = Frontier(url, settings, "doctor")
    try:
        await frontier.check_policy()
        return await _where(frontier)
    finally:
        await frontier.close()


async def _where(frontier: Frontier) -> str:
    """What kind of server the frontier is on, and where."""
    servers = frontier.servers
    owners = [await shard.where() for shard in frontier.shards]
    others = len(await servers.nodes()) - len(set(owners))
    more = f", {others} more may take over" if others else ""
    if servers.family == "sentinel":
        return f"Sentinel master {owners[0]} of {servers.service!r} ({len(servers.seeds)} to ask){more}"
    if servers.family == "cluster":
        held = ", ".join(f"{where} ({owners.count(where)})" for where in dict.fromkeys(owners))
        return f"cluster, {len(owners)} shards on {held}{more}"
    return f"single server {owners[0]}"


def _store(settings: Settings) -> str:

    if settings.store_url is None and not settings.sqlite_path.exists():
        return f"will be created at {settings.sqlite_path}"
    with Store.open(settings.effective_store_url) as store:
        return store.where


def _segments(settings: Settings) -> str:

    segments_of(settings).close()  # raises for an invalid address
    if settings.segments_url is not None:
        return settings.segments_url
    folder = settings.segments_dir
    if settings.store_url is not None or settings.sqlite_path.exists():
        with Store.open(settings.effective_store_url) as store:
            _check_sizes(store, folder)
    size = sum(_size(file) for file in folder.rglob("*") if file.is_file())
    return f"{folder}, {size / 1e6:,.1f} MB" if folder.exists() else str(folder)


def _check_sizes(store: Store, folder: Path) -> None:
    """Raise Damaged if a segment is shorter than the database says."""

    def short() -> dict[str, int]:
        with store.read() as tx:
            written = committed_so_far(tx)
        return {name: size for name, size in sorted(written.items()) if _size(folder / name) < size}

    # A segment that is deleted meanwhile leaves the database first, so it is not listed the second time.
    if not short() or not (found := short()):
        return
    name, size = next(iter(found.items()))
    raise Damaged(
        f"{len(found)} segments in {folder} are missing or too short. {name} has {_size(folder / name):,} bytes, but "
        f"the database refers to {size:,}. Restore them from a backup, or crawl their pages again."
    )


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def _model(settings: Settings) -> Check:
    """Ask the language model of the settings once, or say what could be used."""

    if settings.llm_kind == "none":
        local = (
            'the local one is available: llm = "local"' if what_is_missing() is None else "no local one is installed"
        )
        return Check("language model", None, f"not set; {local}", "docs/how-to/models.md says how to name one.")
    return _guarded("language model", _local_model if settings.llm_kind == "local" else _endpoint, settings)


def _local_model(settings: Settings) -> str:

    with LocalModel(settings.data_dir, threads=settings.llm_threads) as local:
        began = time.monotonic()
        asked = [{"role": "user", "content": "Say hello."}]
        call(local(), asked, {}, max_tokens=8, timeout_s=settings.llm_timeout_s, options=CallOptions(form="plain"))
        took_s = time.monotonic() - began
        return f"{settings.llm_name}, {find_weights()}, answers in {took_s:.1f} s"


def _endpoint(settings: Settings) -> str:

    where = endpoint_of(settings)
    offered = models(where, min(10.0, settings.llm_timeout_s))
    if where.model not in offered:
        some = ", ".join(offered[:5]) or "none"
        raise Unavailable(f"{where.url} has no model {where.model!r}; it offers {some}. Check llm_model.")
    capped = settings.llm_max_cost_per_crawl is not None or settings.llm_max_tokens_per_crawl is not None
    return f"{where.model} at {where.url}" + ("" if capped else ", without any cap per crawl")


def _contact(settings: Settings) -> Check:
    set_ = not has_placeholder(settings)
    repair = "Set CURTSY_CONTACT to an address where the owner of a site can reach you."
    return Check("user agent", True if set_ else None, settings.full_user_agent, repair)


def memory_bound(settings: Settings) -> str:
    """The upper bound of the frontier server's memory, however large the crawl."""
    head = min(512, max(16, int(60 / settings.delay_s))) if settings.delay_s else 512
    queues = settings.queues_in_play * (QUEUE_BYTES + head * LISTED_BYTES)
    total_mb = (SERVER_BYTES + queues) / 1e6 + settings.seen_cap_mb
    each = f"({QUEUE_BYTES} + {head} URLs x {LISTED_BYTES}) bytes"
    return (
        f"at most {total_mb:,.0f} MB = {settings.queues_in_play:,} queues x {each} "
        f"+ {settings.seen_cap_mb} MB of seen URLs"
    )


def _optional(settings: Settings) -> Iterator[Check]:

    for package, module, extra in (("psycopg", "psycopg", "postgres"), ("pyarrow", "pyarrow", "parquet")):
        if util.find_spec(module):
            yield Check(package, True, metadata.version(package))
        else:
            yield Check(package, None, "not installed (optional)", f"pip install 'curtsy[{extra}]'")
    try:
        found = chromium.check_installed(settings)
    except CurtsyError as error:
        yield Check("browser", None, "not found (optional: only --render needs one)", str(error))
    else:
        yield _guarded("browser", lambda given: f"{found}, {_tried(given)}, by {given.renderer}", settings)


def _tried(settings: Settings) -> str:
    """A browser that is installed may fail to start: for lack of memory, sandbox or libraries."""

    async def start() -> str:
        browser = await Chromium.start(settings)
        found = "starts, sealed from the network" if browser.sealed else "starts, without a network"
        browser.kill()
        return found if await browser.gone() else f"{found}, does not exit"

    return asyncio.run(start())
