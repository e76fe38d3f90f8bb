"""`python -m curtsy.tinyweb`: serve the tiny web, list its faults, or write its pages as files."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import uvloop

from curtsy.tinyweb import faults
from curtsy.tinyweb.accesslog import AccessLog
from curtsy.tinyweb.facts import DOMAIN
from curtsy.tinyweb.faults.registry import FaultHost
from curtsy.tinyweb.pages import OrgSite, Shape
from curtsy.tinyweb.server import Server
from curtsy.tinyweb.web import DEMO_FAULTS, Web, demo_seeds


def main(argv: Sequence[str] | None = None) -> int:
    """Return exit code 0, or 2 for invalid arguments."""
    parser = _parser()
    options = parser.parse_args(argv)
    if not 0 <= options.port <= 65535 or options.hosts < 0 or options.pages < 1:
        parser.error("--port must be 0 to 65535, --hosts at least 0, --pages at least 1")
    if options.list:
        _list(as_json=options.json)
        return 0
    names = None if options.faults == "all" else [name for name in options.faults.split(",") if name != "none"]
    try:
        web = Web(
            options.hosts,
            Shape(pages=options.pages, page_kb=options.page_kb, links=options.links),
            options.seed,
            names,
            options.slow,
        )
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if options.seeds:
        seeds = list(demo_seeds() if options.demo else web.seeds)
        print(json.dumps({"seeds": seeds}, indent=1) if options.json else "\n".join(seeds))
    elif options.write_site is not None:
        _write_site(web, options.write_site)
    else:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(web, options))
    return 0


class _Defaults(argparse.ArgumentDefaultsHelpFormatter):
    """Shows the default of an option that has one."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return action.help if action.default is None or action.default is False else super()._get_help_string(action)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="curtsy tinyweb", description="A small synthetic web on loopback.", formatter_class=_Defaults
    )
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 selects a free one")
    parser.add_argument("--hosts", type=int, default=20, help="number of organizations (org-0000 and on)")
    parser.add_argument("--pages", type=int, default=30, help="pages per organization")
    parser.add_argument("--seed", type=int, default=1, help="another seed generates another web")
    parser.add_argument("--page-kb", type=float, default=None, help="pad pages to about this size, for benchmarks")
    parser.add_argument("--links", type=int, default=None, help="exactly this many links per page, for benchmarks")
    parser.add_argument("--slow", type=int, default=0, help="the last SLOW organizations answer slowly")
    parser.add_argument("--faults", default="all", help="'all', 'none', or names separated by commas")
    parser.add_argument("--access-log", type=Path, default=None, help="write one line per request to this file")
    parser.add_argument("--list", action="store_true", help="list the hosts with faults and the expected behavior")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    parser.add_argument("--seeds", action="store_true", help="print the seed URLs")
    parser.add_argument("--demo", action="store_true", help="with --seeds: a selection that takes less than a minute")
    parser.add_argument("--write-site", type=Path, default=None, metavar="DIR", help="write DIR/<host>/<path> and exit")
    parser.add_argument("--with-parent", action="store_true", help="exit when standard input is closed")
    return parser


def _list(*, as_json: bool) -> None:
    if as_json:
        print(json.dumps([_described(host) for host in faults.every()], indent=1))
        return
    for host in faults.every():
        print(f"{host.host}\n    {host.about}\n    expected: {host.expected}")


def _described(host: FaultHost) -> dict[str, object]:
    return {
        "name": host.name,
        "host": host.host,
        "about": host.about,
        "expected": host.expected,
        "seeds": list(host.seeds),
        "forbidden": list(host.forbidden),
        "crawl_delay_s": host.crawl_delay_s,
        "ends": {path: list(ends) for path, ends in host.ends.items()},
        "demo": host.name in DEMO_FAULTS,
    }


async def _serve(web: Web, options: argparse.Namespace) -> None:
    # Every client connection is a file; the default limit of 1,024 would limit the clients.
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    if options.with_parent:
        loop.add_reader(sys.stdin.fileno(), _watch_parent, ended)
    server = Server(web, AccessLog(options.access_log), loop)
    await server.start(port=options.port)
    _announce(web, server.port, as_json=options.json)
    await ended.wait()
    server.close()


def _watch_parent(ended: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 4096):
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        ended.set()


def _announce(web: Web, port: int, *, as_json: bool) -> None:
    rule = f"*.{DOMAIN}=127.0.0.1:{port}"
    if as_json:
        hosts = [*web.org_hosts, *(fault.host for fault in web.faults)]
        print(json.dumps({"port": port, "resolve": rule, "hosts": hosts, "seeds": web.seeds}), flush=True)
        return
    print(f"{web.hosts} organizations and {len(web.faults)} hosts with faults on 127.0.0.1:{port}. Ctrl-C stops it.")
    print(f"Crawl it with: curtsy crawl --config tinyweb.toml --resolve '{rule}' http://org-0000.{DOMAIN}/", flush=True)


def _write_site(web: Web, folder: Path) -> None:
    for host in web.org_hosts:
        site = OrgSite(host, web.shape, web.seed)
        _write(folder / host / "robots.txt", site.robots())
        for path in site.paths:
            # A page may also be the parent of others (/news, /news/0001), so each is the index of its own folder.
            _write(folder / host / path.strip("/") / "index.html", site.html(path))


def _write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, "utf-8")


if __name__ == "__main__":
    sys.exit(main())
