"""A render worker alone: visits every page of the tiny web's script-only hosts, and says how far it is.

Arguments: resolve rule, hosts, pages per host. Each host is asked one page at a time, as its slot would have it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from itertools import count

import uvloop

from curtsy.core.outcome import Outcome
from curtsy.core.settings import Settings
from curtsy.fetch.renderer import BrowserFetcher
from curtsy.fetch.transfer import FetchJob, boot_clock
from curtsy.tinyweb.facts import Kind, org_host, truth
from curtsy.tinyweb.pages import OrgSite, Shape

#: before each try, as the frontier would have it
PAUSES_S = (0, 1, 2, 4)


class Worker:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._fetcher = BrowserFetcher(settings, asyncio.get_running_loop(), lambda _url, _agent: True)
        self._turns = asyncio.Semaphore(settings.render_concurrency)
        self._ids = count(1)
        self._good = self._again = 0

    async def visit_host(self, host: str, paths: list[str]) -> None:
        name = truth(host).name.encode()
        for path in paths:
            async with self._turns:
                for pause_s in PAUSES_S:
                    await asyncio.sleep(pause_s)
                    outcome = await self._visit(f"http://{host}{path}")
                    if outcome.fault is None and name in outcome.body:
                        self._good += 1
                        break
                    self._again += 1
            self._say()

    async def _visit(self, url: str) -> Outcome:
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        job = FetchJob(
            id=next(self._ids), url=url, deadline=boot_clock() + self._settings.render_slot_s - 3,
            timeout_s=self._settings.render_timeout_s, max_bytes=10_000_000,
        )  # fmt: skip
        self._fetcher.start(job, lambda _id, outcome: future.set_result(outcome))
        return await future

    def _say(self) -> None:
        print(json.dumps({"good": self._good, "again": self._again}), flush=True)

    async def close(self) -> None:
        await self._fetcher.close()


async def main(rule: str, hosts: int, pages: int) -> None:
    worker = Worker(Settings(resolve=(rule,)))
    wanted = [org_host(number) for number in range(hosts)]
    wanted = [host for host in wanted if truth(host).kind in (Kind.SCRIPT, Kind.FETCHED)]
    try:
        await asyncio.gather(*(worker.visit_host(host, OrgSite(host, Shape(pages=pages)).paths) for host in wanted))
    finally:
        await worker.close()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
