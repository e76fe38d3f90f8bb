"""HTTPS and page sizes: Curtsy beside Scrapy, Crawlee and a bare loop, over HTTP/1.1 and HTTP/2.

The hosts are addresses of the loopback network, so no crawler needs names. The pages are compressed, as most servers
send them. The log of nginx shows how many connections each crawler opened, and how many of them resumed a TLS session.
"""

from __future__ import annotations

import gzip
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import nginx, site
from bench.contestants import BARE, CRAWLEE, CURTSY, PEERS, SCRAPY, Contestant, Result, crawl_once
from bench.measure import RunFailed
from bench.plan import Plan
from bench.report import Bar, Section, number

#: KB of a page, protocol, whether connections are kept
CASES = (
    (20, "HTTP/1.1", True),
    (20, "HTTP/1.1", False),
    (20, "HTTP/2.0", True),
    (100, "HTTP/2.0", True),
    (250, "HTTP/1.1", True),
    (250, "HTTP/2.0", True),
)
#: of a page without more text
_PLAIN_KB = 20
#: small pages have this many times the hosts: otherwise most of the CPU is that of the start
_MORE_HOSTS = 5
_CONFIG = """
  log_format tls '$connection $ssl_session_reused $server_protocol $status';
  ssl_certificate {folder}/certificate.pem;
  ssl_certificate_key {folder}/key.pem;
  ssl_protocols TLSv1.2 TLSv1.3;
  ssl_session_cache shared:tls:10m;
  gzip_static on;
"""


class AddressSite(site.Site):
    """A site whose hosts are addresses of the loopback network."""

    def host(self, number: int) -> str:
        return f"127.0.1.{number % self.hosts + 1}"

    def origin(self, number: int) -> str:
        return f"https://{self.host(number)}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A site under measurement."""

    site: site.Site
    certificate: Path
    log: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Connections:
    """What the server's log says about one crawl."""

    per_page: float
    #: part of the connections that resumed a TLS session
    resumed: float
    protocol: str


def connections_of(lines: Sequence[str], pages: int) -> Connections:
    """From lines of nginx's log: connection, whether its TLS session was resumed ("r"), protocol, status."""
    found = {number: (reused, protocol) for number, reused, protocol, _ in (line.split() for line in lines)}
    resumed = sum(reused == "r" for reused, _ in found.values())
    protocols = sorted({protocol for _, protocol in found.values()})
    return Connections(
        per_page=len(found) / max(pages, 1), resumed=resumed / max(len(found), 1), protocol=" and ".join(protocols)
    )


def figures(plan: Plan, say: Callable[[str], None]) -> list[Section]:
    if shutil.which("openssl") is None:
        raise RunFailed("openssl is missing. Install it (Debian: apt-get install openssl), and try again.")
    rows: list[tuple[str, ...]] = []
    medians: dict[tuple[int, str, bool, str], float] = {}
    for case in CASES:
        with serving(plan, *case) as served:
            for name, results in _compete(plan, served, case, say).items():
                cpu = sorted(result.cpu_ms_per_page for result, _ in results)
                medians[(*case, name)] = statistics.median(cpu)
                rows.append(_row(case, name, results))
    text = (
        f"Crawls of {plan.tls_hosts} hosts x {plan.tls_pages} pages with 40 links over HTTPS, compressed with gzip; "
        f"of pages of {_PLAIN_KB} KB, {plan.tls_hosts * _MORE_HOSTS} hosts. "
        "A kept connection serves many requests; otherwise the server closes it after each one. CPU is that of all "
        f"processes of the crawler. Values are medians of {plan.repeats} interleaved repeats, with the smallest and "
        "the largest in brackets. A resumed connection skips the costly part of the TLS handshake."
    )
    head = (
        "page",
        "protocol",
        "connections",
        "crawler",
        "CPU ms per page",
        "pages/s",
        "connections per page",
        "resumed",
    )
    return [Section(title="HTTPS and page sizes", text=text, head=head, rows=tuple(rows), bars=_bars(medians))]


def _row(case: tuple[int, str, bool], name: str, results: Sequence[tuple[Result, Connections]]) -> tuple[str, ...]:
    cpu = sorted(result.cpu_ms_per_page for result, _ in results)
    last = results[-1][1]
    return (
        f"{case[0]} KB",
        last.protocol,
        "kept" if case[2] else "one per request",
        name,
        f"**{statistics.median(cpu):.3f}** ({cpu[0]:.3f} to {cpu[-1]:.3f})",
        number(statistics.median(result.pages_per_s for result, _ in results)),
        f"{last.per_page:.2f}",
        f"{last.resumed:.0%}",
    )


def _bars(medians: dict[tuple[int, str, bool, str], float]) -> tuple[Bar, ...]:
    def ratio(kb: int, above: str, below: str) -> float:
        case = (kb, "HTTP/2.0", True)
        return medians[(*case, above)] / medians[(*case, below)]

    bars = [
        Bar(what="Curtsy / bare loop, CPU per page of 20 KB", value=ratio(20, CURTSY, BARE), limit=2),
        Bar(what="Curtsy / bare loop, CPU per page of 250 KB", value=ratio(250, CURTSY, BARE), limit=1.6),
    ]
    if any(name == SCRAPY for *_, name in medians):
        value = ratio(250, SCRAPY, CURTSY)
        bars.append(Bar(what="Scrapy / Curtsy, CPU per page of 250 KB", value=value, limit=4, at_least=True))
    return tuple(bars)


def _compete(
    plan: Plan, served: Served, case: tuple[int, str, bool], say: Callable[[str], None]
) -> dict[str, list[tuple[Result, Connections]]]:
    results: dict[str, list[tuple[Result, Connections]]] = {}
    for _ in range(plan.repeats):
        for contestant in contestants(served.certificate, plan.peers):
            folder = Path(tempfile.mkdtemp(prefix="curtsy-bench-"))
            before = served.log.stat().st_size
            try:
                result = crawl_once(contestant, served.site, folder)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            with served.log.open() as log:
                log.seek(before)
                found = connections_of(log.read().splitlines(), result.pages)
            results.setdefault(contestant.name, []).append((result, found))
            say(f"  {case} {contestant.name}: {result.cpu_ms_per_page:.3f} ms of CPU per page, {found}")
    return results


def contestants(certificate: Path, python: str | None) -> list[Contestant]:
    def curtsy(site: site.Site, folder: Path) -> Sequence[str]:
        (folder / "curtsy.toml").write_text(f'ca_file = "{certificate}"\n')
        options = ["--delay", "0", "--allow-private", "127.0.0.0/8", "--config", "curtsy.toml", "--json"]
        return [sys.executable, "-m", "curtsy.cli", "crawl", "--from", "seeds.txt", *options]

    def script(program: str, name: str, *more: str) -> Callable[[site.Site, Path], Sequence[str]]:
        return lambda _site, folder: [program, str(PEERS / name), str(folder / "seeds.txt"), *more]

    field = [
        Contestant(name=CURTSY, command=curtsy),
        Contestant(name=BARE, command=script(sys.executable, "bare_loop.py", "--ca-file", str(certificate))),
    ]
    if python is not None:
        field += [
            Contestant(name=SCRAPY, command=script(python, "scrapy_spider.py", "--robots", "--all-hosts")),
            Contestant(name=CRAWLEE, command=script(python, "crawlee_crawler.py", "--direct")),
        ]
    return field


@contextmanager
def serving(plan: Plan, kb: int, protocol: str, kept: bool) -> Iterator[Served]:
    with tempfile.TemporaryDirectory(prefix="curtsy-bench-tls-") as name:
        folder = Path(name)
        hosts = plan.tls_hosts * (1 if kb > _PLAIN_KB else _MORE_HOSTS)
        made = AddressSite(folder=folder / "site", hosts=hosts, pages=plan.tls_pages, port=plan.port)
        site.write_into(made, times=times_of(kb))
        for file in made.folder.rglob("*.html"):
            Path(f"{file}.gz").write_bytes(gzip.compress(file.read_bytes(), 6))
        _issue(folder, [made.host(host) for host in range(made.hosts)])
        log = folder / "requests.log"
        options = "ssl http2" if protocol == "HTTP/2.0" else "ssl"
        more = _CONFIG.format(folder=folder)
        with nginx.serving_folder(
            made.folder, made.port, folder / "nginx", listen=options, address="*", more=more,
            keepalive_s=65 if kept else 0, charset="utf-8", log=log, log_format="tls",
        ):  # fmt: skip
            yield Served(site=made, certificate=folder / "certificate.pem", log=log)


def times_of(kb: int) -> int:
    """How many times as much text a page of that size has: 10 KB of it are markup, 11 KB text."""
    return max(1, round((kb - 10) / 11))


def _issue(folder: Path, addresses: Sequence[str]) -> None:
    """A certificate for these addresses that vouches for itself."""
    names = ",".join(f"IP:{address}" for address in addresses)
    words = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    words += ["-subj", "/CN=curtsy benchmark", "-addext", f"subjectAltName={names}"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "certificate.pem")]
    done = subprocess.run(["openssl", *words, *files], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RunFailed(f"openssl could not make a certificate: {done.stderr[-500:]}")
