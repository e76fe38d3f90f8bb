"""`hosts`: the state of hosts, and the operator's settings for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

import typer

from curtsy.cli import show
from curtsy.cli.commands import Commands
from curtsy.cli.options import LocalOptions, Wide
from curtsy.client.local import frontier_runs, with_services
from curtsy.control import hosts as operator_hosts
from curtsy.core import clock
from curtsy.core.errors import UsageError
from curtsy.core.model import HostState
from curtsy.core.times import timestamp
from curtsy.store import hosts, queues

#: the delays are in seconds: of `hosts delay`, of robots.txt, and because of slow or failing answers
_COLUMNS = ("host", "set delay", "robots delay", "adaptive delay", "failures", "blocked until", "denied", "fault")
app = Commands("Show hosts, block them, or set their delays.")
Host = Annotated[str, typer.Argument(metavar="HOST", help="hostname[:port], or a URL of the host.")]


@app.command("list")
def list_(
    shared: LocalOptions,
    notable: Annotated[bool, typer.Option("--notable", help="Only blocked, failing, slow or denied hosts.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10**9, metavar="N", help="At most N.")] = 1000,
    wide: Wide = False,
) -> None:
    """List hosts by name."""
    at_ms = clock.now_ms() if notable else None
    with shared.stored() as (_settings, store), store.read() as tx:
        found = hosts.chunk(tx, limit=limit, notable_at_ms=at_ms)
        faults = {host: fault for host, (fault, _) in queues.faults(tx).items()}
    # Names that were never resolved have no row.
    found += [HostState(host=host) for host in sorted(faults.keys() - {state.host for state in found})]
    found = sorted(found, key=lambda state: state.host)[:limit]
    if shared.printed({"hosts": [asdict(state) | {"fault": faults.get(state.host)} for state in found]}):
        return
    rows = [
        (
            s.host,
            *_delays_s(s),
            s.failures or None,
            timestamp(s.blocked_until_ms),
            "yes" if s.denied else None,
            faults.get(s.host),
        )
        for s in found
    ]
    show.table(_COLUMNS, rows, wide)


@app.command("show")
def show_(shared: LocalOptions, host: Host) -> None:
    """Show the state of a host."""
    _change(shared, host, None)


@app.command()
def block(shared: LocalOptions, host: Host) -> None:
    """Block a host: its URLs are skipped in every crawl."""
    _change(shared, host, {"denied": True})


@app.command()
def unblock(shared: LocalOptions, host: Host) -> None:
    """Unblock a host, and end its waiting time.

    That is the time after a 429 or 503 response, a Retry-After header or failures.
    """
    _change(shared, host, {"denied": False}, lift=True)


@app.command()
def delay(
    shared: LocalOptions,
    host: Host,
    seconds: Annotated[
        float | None, typer.Argument(metavar="SECONDS", min=0, max=86400, help="Minimum delay; omit it to reset.")
    ] = None,
    per_host: Annotated[
        int | None, typer.Option("--per-host", min=1, max=64, metavar="N", help="Concurrent requests.")
    ] = None,
) -> None:
    """Set the delay of a host.

    robots.txt and the crawl may require more, never less.
    """
    delay_ms = None if seconds is None else round(seconds * 1000)
    changes = {"operator_delay_ms": delay_ms, "operator_per_host": per_host}
    _change(shared, host, changes)


def _change(shared: LocalOptions, name: str, changes: Mapping[str, Any] | None, *, lift: bool = False) -> None:
    if "*" in name:
        raise UsageError(f"{name!r} is a pattern. Name one host, or add the pattern to the setting deny_hosts.")
    with shared.stored(looks=changes is None) as (settings, store):
        with store.read() as tx:
            host = operator_hosts.resolve_host(tx, name, settings.politeness_unit)
            state = hosts.get(tx, host)
            fault, _ = queues.faults(tx, host).get(host, (None, 0))
        if state is None and fault is None and changes is None:
            raise UsageError(f"Unknown host: {host!r}. `curtsy hosts list` lists the known hosts.")
        state = state or HostState(host=host)
        if changes is not None:
            store.run(operator_hosts.set_operator_values, host, changes)
            if lift:
                operator_hosts.lift(store, settings, host, clock.now_ms())
            with store.read() as tx:
                state = hosts.get_many(tx, [host])[host]
            if frontier_runs(settings):
                with_services(settings, lambda built: operator_hosts.send_to_frontier(built, host, lift))
    fields = asdict(state) | {"fault": fault}
    if shared.printed(fields):
        return
    for field, value in fields.items():
        text = timestamp(value) if field in ("next_ms", "blocked_until_ms", "last_ok_ms") else value
        show.say(f"{field:<18} {'-' if text is None else text}")


def _delays_s(state: HostState) -> list[str | None]:
    parts = (state.operator_delay_ms, state.robots_delay_ms, state.adaptive_ms)
    return [f"{part / 1000:g}" if part else None for part in parts]
