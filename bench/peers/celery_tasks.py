"""The usual crawler on Celery: a task per URL, httpx in the task, SADD against repeats, INCR per host and second, retry
with a countdown where the host had its request of this second.

    celery -A celery_tasks worker -c N          (BROKER, WEB_PORT, DELAY in the environment)
    python celery_tasks.py seeds.txt            sends the first tasks

No robots.txt, no store. A client per process, kept open; pages and the seen set are counted in Redis.
"""

from __future__ import annotations

import os
import sys
import time
from functools import cache
from pathlib import Path
from urllib.parse import urldefrag, urljoin, urlsplit

import httpx
import redis
from celery import Celery, signals
from selectolax.lexbor import LexborHTMLParser

BROKER = os.environ["BROKER"]
#: every host is on this port of the loopback address
WEB_PORT = int(os.environ["WEB_PORT"])
#: seconds; 0: without the limiter
DELAY = float(os.environ["DELAY"])

app = Celery("celery_tasks", broker=f"{BROKER}/0")
app.conf.update(
    task_ignore_result=True,
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
    worker_send_task_events=False,
)


@cache
def state() -> redis.Redis:
    return redis.Redis.from_url(f"{BROKER}/1")


@cache
def web() -> httpx.Client:
    return httpx.Client(base_url=f"http://127.0.0.1:{WEB_PORT}", timeout=20)


@signals.worker_ready.connect
def count_worker(**_: object) -> None:
    state().incr("workers")


def is_free(host: str) -> bool:
    """One request per host and second."""
    key = f"rate:{host}:{int(time.time() / DELAY)}"
    with state().pipeline() as pipeline:
        pipeline.incr(key)
        pipeline.expire(key, int(DELAY * 10) + 1)
        return int(pipeline.execute()[0]) == 1


@app.task(bind=True, max_retries=None, name="fetch")
def fetch(self, url: str) -> None:
    parts = urlsplit(url)
    if DELAY and not is_free(parts.netloc):
        state().incr("retries")
        raise self.retry(countdown=DELAY)
    answer = web().get(parts.path or "/", headers={"Host": parts.netloc})
    if answer.status_code == 200:
        state().incr("pages")
        follow(url, answer.content)


def follow(url: str, body: bytes) -> None:
    host = urlsplit(url).netloc
    hrefs = (node.attributes.get("href") or "" for node in LexborHTMLParser(body).css("a[href]"))
    found = {urldefrag(urljoin(url, href)).url for href in hrefs}
    send([link for link in sorted(found) if urlsplit(link).netloc == host])


def send(urls: list[str]) -> None:
    """Those that were not seen yet."""
    if not urls:
        return
    with state().pipeline() as pipeline:
        for url in urls:
            pipeline.sadd("seen", url)
        added = pipeline.execute()
    for url, is_new in zip(urls, added, strict=True):
        if is_new:
            fetch.delay(url)


if __name__ == "__main__":
    send(Path(sys.argv[1]).read_text().split())
