"""A crawl as a task: submitted once, awaited without a worker; its counts and addresses are the XCom result."""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Literal

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from curtsy.airflow import crawl_identity
from curtsy.airflow.crawl_events import GONE, REFUSED, TIMED_OUT
from curtsy.airflow.deferring import default_deferrable, renamed
from curtsy.airflow.hook import DEFAULT, CurtsyHook, Place
from curtsy.airflow.links import XCOM_KEY, CurtsyCrawlLink
from curtsy.airflow.trigger import CurtsyCrawlTrigger
from curtsy.client.server import Server
from curtsy.core.errors import Unavailable, UsageError

DeadLetters = Literal["fail", "warn", "ignore"]
#: the export files of the dashboard
EXPORTS = ("pages.jsonl", "pages.csv", "pages.warc.gz", "records.jsonl")
#: a crawl cancelled so soon after a try joined it was cancelled together with the previous try
_LATE_KILL_S = 60.0
#: what `options` may name
_FIELDS = frozenset(inspect.signature(Server.submit).parameters) - {"self", "seeds", "idempotency_key"}
_NUMBERS: dict[str, type[int] | type[float]] = {"max_pages": int, "max_depth": int, "per_host": int, "delay_s": float}


class CurtsyCrawlOperator(BaseOperator):
    """Submits a crawl and waits for its end: in the triggerer, or with `deferrable=False` on the worker.

    `seeds` is a list, or a text with a URL per word. `options` has the other fields of
    `POST /v1/crawls` (docs/reference/api.md).
    `on_dead_letters`: what more than `max_dead_letters` of them do: `fail`, `warn` or `ignore`; a retry after such a
    failure replays them in the same crawl. `crawl_timeout`: the crawl is canceled after that long, and the task fails.
    `export_to`: files to write its pages to when it has ended, for example s3://bucket/{{ ds }}/pages.parquet; the
    connection must name the store. `cancel_on_kill`: cancel the crawl when a person ends the task.
    """

    template_fields: Sequence[str] = (
        "seeds", "scope", "include", "exclude", "max_pages", "max_depth", "delay_s", "schema", "crawl_name", "tags",
        "options", "export_to", "curtsy_conn_id",
    )  # fmt: skip
    template_fields_renderers = {"seeds": "json", "options": "json", "schema": "json"}  # noqa: RUF012
    operator_extra_links = (CurtsyCrawlLink(),)
    ui_color = "#e8f0e4"

    def __init__(
        self,
        *,
        seeds: Sequence[str] | str,
        scope: str | None = None,
        include: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
        max_pages: int | str | None = None,
        max_depth: int | str | None = None,
        delay_s: float | str | None = None,
        schema: str | dict[str, Any] | None = None,
        crawl_name: str | None = None,
        tags: Sequence[str] | None = None,
        options: Mapping[str, Any] | None = None,
        wishes: Mapping[str, Any] | None = None,
        on_dead_letters: DeadLetters = "warn",
        max_dead_letters: int = 0,
        export_to: str | Sequence[str] = (),
        crawl_timeout: timedelta | None = None,
        cancel_on_kill: bool = True,
        poll_interval: float = 10.0,
        poll_s: float | None = None,
        deferrable: bool | None = None,
        curtsy_conn_id: str = DEFAULT,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if on_dead_letters not in ("fail", "warn", "ignore"):
            raise ValueError(f"on_dead_letters is {on_dead_letters!r}: use fail, warn or ignore")
        self.seeds, self.scope, self.include, self.exclude = seeds, scope, include, exclude
        self.max_pages, self.max_depth, self.delay_s, self.schema = max_pages, max_depth, delay_s, schema
        self.crawl_name, self.tags = crawl_name, tags
        if wishes is not None:
            warnings.warn("The argument `wishes` is now called `options`", DeprecationWarning, stacklevel=3)
        self.options, self.export_to = wishes if options is None else options, export_to
        self.on_dead_letters, self.max_dead_letters = on_dead_letters, max_dead_letters
        self.crawl_timeout, self.cancel_on_kill = crawl_timeout, cancel_on_kill
        self.poll_interval = renamed("poll_s", "poll_interval", poll_s, poll_interval)
        self.deferrable = default_deferrable() if deferrable is None else deferrable
        self.curtsy_conn_id = curtsy_conn_id
        self.crawl_url: str | None = None
        #: for on_kill: a signal handler cannot request a connection from Airflow
        self._held: tuple[Server, str] | None = None
        #: id and pages of the crawl that has ended, for OpenLineage
        self._delivered: tuple[str, int] | None = None

    @property
    def wishes(self) -> Mapping[str, Any] | None:
        """Deprecated name of `options`."""
        warnings.warn("The attribute `wishes` is now called `options`", DeprecationWarning, stacklevel=2)
        return self.options

    # Called by Airflow

    def execute(self, context: Any) -> dict[str, Any]:
        place = CurtsyHook(self.curtsy_conn_id).place()
        server = Server(place.url, place.key)
        try:
            self._check_targets()
            joined = crawl_identity.join(server, context, self._seeds(), self._options())
            self._take_up(context, place, server, joined)
        except Unavailable:
            raise  # a retry joins the same crawl
        except UsageError as error:
            raise AirflowFailException(str(error)) from error
        id, until = joined.status["id"], self._until()
        if not self.deferrable:
            return self._ended(context, place, joined.number, self._wait(server, id, until))
        self.defer(
            trigger=CurtsyCrawlTrigger(
                crawl_id=id, curtsy_conn_id=self.curtsy_conn_id, poll_s=self.poll_interval, until=until,
                cancel_on_kill=self.cancel_on_kill,
            ),
            method_name="execute_complete",
            kwargs={"number": joined.number, "joined_at": time.time() if joined.before else None},
        )  # fmt: skip
        raise AssertionError("deferred")

    def execute_complete(
        self, context: Any, event: dict[str, Any], number: int = 1, joined_at: float | None = None
    ) -> dict[str, Any]:
        """Continue with the trigger's event."""
        if event["state"] == "cancelled" and joined_at is not None and _ended_at(event) - joined_at < _LATE_KILL_S:
            self.log.info("Crawl %s was canceled with an earlier try of this task. Creating a new crawl.", event["id"])
            return self.execute(context)
        return self._ended(context, CurtsyHook(self.curtsy_conn_id).place(), number, event)

    def on_kill(self) -> None:
        """Called while the task runs on a worker. While it is deferred, Airflow calls that of the trigger."""
        if self._held is not None and self.cancel_on_kill:
            _cancel(*self._held)

    def get_openlineage_facets_on_complete(self, _task_instance: Any) -> Any:
        """Called by Airflow's OpenLineage provider: which sites were read, and where their pages are."""
        if self._delivered is None or self.crawl_url is None:
            return None
        from curtsy.airflow.lineage import of_crawl  # needs the provider

        return of_crawl(self._seeds(), self.crawl_url, *self._delivered, self._targets())

    # The crawl

    def _take_up(self, context: Any, place: Place, server: Server, joined: crawl_identity.Joined) -> None:
        status = joined.status
        self._held = (server, status["id"])
        self.crawl_url = place.crawl_url(status["id"])
        context["ti"].xcom_push(key=XCOM_KEY, value=self.crawl_url)
        self.log.info("Crawl %s is %s: %s", status["id"], status["state"], self.crawl_url)
        # The previous try failed because of dead letters: a retry replays them.
        if joined.before and status["state"] == "finished" and self._too_many(status["counts"]["failed"]):
            replayed = server.replay_failures(crawl=status["id"])
            self.log.info("Replaying the dead letters of the previous try: %s", replayed)

    def _wait(self, server: Server, id: str, until: float | None) -> Mapping[str, Any]:
        """Waits on the worker, across outages of the control plane."""
        while until is None or time.time() < until:
            try:
                return server.wait(id, None if until is None else max(0.0, until - time.time()))
            except Unavailable as error:
                self.log.warning("%s", error)
                time.sleep(1.0 if until is None else max(0.0, min(1.0, until - time.time())))
        return {"id": id, "state": TIMED_OUT, "reason": None}

    def _ended(self, context: Any, place: Place, number: int, status: Mapping[str, Any]) -> dict[str, Any]:
        """The task's result, or its failure."""
        id, state = str(status["id"]), status["state"]
        self.crawl_url = place.crawl_url(id)
        if state == TIMED_OUT:
            _cancel(Server(place.url, place.key), id)
            raise AirflowException(f"Crawl {id} exceeded crawl_timeout ({self.crawl_timeout}) and was canceled.")
        if state in crawl_identity.LOST or state == GONE:
            # A person did that, and a retry would undo it. Clearing the task creates a new crawl.
            raise AirflowFailException(f"Crawl {id} was canceled or deleted{_because(status)}.")
        if state == REFUSED:
            raise AirflowException(f"Crawl {id} cannot be read{_because(status)}.")
        self._judge(id, status["counts"]["failed"])
        result = self._result(place, id, status)
        for asset in self.outlets:
            context["outlet_events"][asset].extra = {"crawl_id": id, "pages": result["pages"], "url": self.crawl_url}
        crawl_identity.delivered(context, id, number)
        self._delivered = id, int(result["pages"])
        return result

    def _judge(self, id: str, failed: Mapping[str, int]) -> None:
        if not self._too_many(failed):
            return
        causes = ", ".join(f"{n} {cause}" for cause, n in sorted(failed.items(), key=lambda item: -item[1]))
        message = f"Crawl {id} has {sum(failed.values())} dead letters ({causes}): {self.crawl_url}/failures"
        if self.on_dead_letters == "fail":
            raise AirflowException(message)
        if self.on_dead_letters == "warn":
            self.log.warning("%s", message)

    def _too_many(self, failed: Mapping[str, int]) -> bool:
        return self.on_dead_letters != "ignore" and sum(failed.values()) > self.max_dead_letters

    def _result(self, place: Place, id: str, status: Mapping[str, Any]) -> dict[str, Any]:
        counts = dict(status["counts"])
        return {
            "crawl_id": id,
            "state": status["state"],
            "pages": counts["pages"],
            "dead_letters": sum(counts["failed"].values()),
            "counts": counts,
            "url": self.crawl_url,
            "exports": {name: f"{self.crawl_url}/export/{name}" for name in EXPORTS},
            "exported_to": self._export(place, id),
        }

    def _export(self, place: Place, id: str) -> list[str]:
        targets = self._targets()
        if targets:
            # Imports the store and the exports, which most tasks do not need.
            from curtsy.airflow.export_task import write

            for target in targets:
                self.log.info("%d pages written to %s", write(place.settings(), id, target), target)
        return targets

    # Arguments

    def _targets(self) -> list[str]:
        return [self.export_to] if isinstance(self.export_to, str) else list(self.export_to)

    def _check_targets(self) -> None:
        """Refuse a target that cannot be written before the crawl starts, not after it."""
        if targets := self._targets():
            from curtsy.airflow.export_task import check  # imports the exports, which most tasks do not need

            for target in targets:
                check(target)

    def _seeds(self) -> list[str]:
        seeds = self.seeds.split() if isinstance(self.seeds, str) else [str(seed) for seed in self.seeds]
        if not seeds:
            raise UsageError("There are no seeds: give at least one URL.")
        return seeds

    def _options(self) -> dict[str, Any]:
        named = {
            "scope": self.scope, "include": _listed(self.include), "exclude": _listed(self.exclude),
            "max_pages": self.max_pages, "max_depth": self.max_depth, "delay_s": self.delay_s, "schema": self.schema,
            "name": self.crawl_name, "tags": _listed(self.tags),
        }  # fmt: skip
        given = {name: value for name, value in named.items() if value is not None} | dict(self.options or {})
        if unknown := sorted(set(given) - _FIELDS):
            raise UsageError(f"Unknown options: {', '.join(unknown)}. Use fields of POST /v1/crawls.")
        try:
            # Templates produce text.
            return {
                name: _NUMBERS[name](value) if isinstance(value, str) and name in _NUMBERS else value
                for name, value in given.items()
            }
        except ValueError as error:
            raise UsageError(f"Invalid number: {error}.") from None

    def _until(self) -> float | None:
        return None if self.crawl_timeout is None else time.time() + self.crawl_timeout.total_seconds()


def _cancel(server: Server, id: str) -> None:
    with suppress(UsageError):  # it has ended or was deleted
        server.cancel(id)


def _listed(given: Sequence[str] | None) -> list[str] | None:
    return None if given is None else list(given)


def _because(status: Mapping[str, Any]) -> str:
    return f": {status['reason']}" if status.get("reason") else ""


def _ended_at(event: Mapping[str, Any]) -> float:
    """The end of the crawl as Unix time."""
    try:
        return datetime.fromisoformat(str(event.get("ended"))).timestamp()
    except ValueError:
        return time.time()
