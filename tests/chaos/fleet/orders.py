"""The crawls of a round, sent over HTTP by somebody who does not give up: keys make every sending repeatable."""

from __future__ import annotations

import http.client
import json
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.chaos.site import Site

#: a server that was killed in the middle of an upload keeps its key for 15 s
PATIENCE_S = 60.0
#: seeds are stored in parts of 5,000: an upload has three, each page of it many times
LINES = 11_000
BLOCK = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One crawl to be made."""

    name: str
    wish: dict[str, Any]
    seeds: tuple[str, ...]
    #: sent as NDJSON, bit by bit
    upload: bool = False


def orders(site: Site, seeds: list[str]) -> list[Order]:
    """Everything, with records; some of it at once, in lane high; and pages of the others as a long list."""
    hosts = site.organisations()
    render = {"render": "auto"} if site.render else {}
    half = len(hosts) // 2
    quick = tuple(f"http://{host}/" for host in hosts[: half - 2])
    # A depth of 0: what is not among the seeds is not asked for.
    some = sorted(
        url for url in site.pages_of_organisations() if any(host in url for host in hosts[half - 2 : half + 2])
    )
    listed = tuple(some[n % len(some)] for n in range(LINES))
    return [
        Order(name="all", wish={"schema": "page", **render}, seeds=tuple(seeds)),
        Order(name="quick", wish={"lane": "high", "max_depth": 1}, seeds=quick),
        Order(name="listed", wish={"schema": "page", "max_depth": 0, **render}, seeds=listed, upload=True),
    ]


class Desk:
    """Speaks to the API of one round."""

    def __init__(self, port: int, rng: random.Random) -> None:
        self._port = port
        self._keys = {name: f"{name}-{rng.randrange(10**9)}" for name in ("all", "quick", "listed")}
        #: order -> id of its crawl
        self.ids: dict[str, str] = {}
        #: what the API answered that it should not
        self.wrong: list[str] = []

    def send(self, order: Order, half_way: Callable[[], None] | None = None) -> None:
        """Until it is taken. `half_way` is called once, in the middle of an upload."""
        end = time.monotonic() + PATIENCE_S
        headers = {"Idempotency-Key": self._keys[order.name]}
        while True:
            if order.upload:
                headers["Content-Type"] = "application/x-ndjson"
                status, answer = self._ask("POST", "/v1/crawls", _lines(order, half_way), headers)
                half_way = None
            else:
                headers["Content-Type"] = "application/json"
                body = json.dumps({**order.wish, "seeds": order.seeds}).encode()
                status, answer = self._ask("POST", "/v1/crawls", body, headers)
            if status == 202:
                self._note(order.name, answer["id"])
                return
            if time.monotonic() > end:
                raise TimeoutError(f"order {order.name} was not taken in {PATIENCE_S:g} s: {status} {answer}")
            time.sleep(0.3)

    def _note(self, name: str, id: str) -> None:
        if self.ids.setdefault(name, id) != id:
            self.wrong.append(f"order {name} has two crawls: {self.ids[name]} and {id}")

    def change(self, name: str, what: str) -> bool:
        """pause or resume; False if the crawl has ended."""
        end = time.monotonic() + PATIENCE_S
        while True:
            status, answer = self._ask("POST", f"/v1/crawls/{self.ids[name]}/{what}", b"", {})
            if status in (200, 409):
                return status == 200
            if time.monotonic() > end:
                raise TimeoutError(f"{what} of {name} was not taken in {PATIENCE_S:g} s: {status} {answer}")
            time.sleep(0.3)

    def answers(self) -> bool:
        return self._ask("GET", "/healthz", None, {})[0] == 200

    def _ask(self, method: str, path: str, body: Any, headers: dict[str, str]) -> tuple[int, Any]:
        """Status and document; status 0 if nobody answers."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=20)
        try:
            connection.request(method, path, body, headers, encode_chunked=True)
            answer = connection.getresponse()
            said = answer.read()
        except (OSError, http.client.HTTPException) as error:
            return 0, repr(error)
        finally:
            connection.close()
        # 503 is the truth while a part is away; anything else of this kind is a fault.
        if answer.status >= 500 and answer.status != 503:
            self.wrong.append(f"{method} {path} answered {answer.status}: {said[:300]!r}")
        return answer.status, json.loads(said) if said else None


def _lines(order: Order, half_way: Callable[[], None] | None) -> Iterator[bytes]:
    yield json.dumps(order.wish).encode() + b"\n"
    for at in range(0, len(order.seeds), BLOCK):
        if half_way is not None and at >= len(order.seeds) // 2:
            half_way()
            half_way = None
        yield "".join(f'"{seed}"\n' for seed in order.seeds[at : at + BLOCK]).encode()
