"""`@polite_slot`: a task whose function runs only while it holds its host's turn, and waits for it without a worker.

The invariant: the function runs in the process that took the turn, between the taking and the turn's expiry by that
process's own clock, and never otherwise. A trigger takes nothing and hands nothing over; it says when to try.

1. The task starts on a worker and asks for the turn, for `patience_s` at most. If it is granted, go on at 3.
2. Else it defers. The trigger waits in line for the host and fires when the turn is likely to be had: go on at 1.
   Whoever loses the race (to a crawl, a spider, another task) defers again.
3. The function runs. What is still running when the turn expires is broken off with TurnOver.
4. The turn goes back, and the host's delay begins. If the process is killed, the frontier takes the slot back when it
   expires, and the delay begins then.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk.bases.decorator import DecoratedOperator, task_decorator_factory

from curtsy.airflow.held_slot import Desk, HeldTurn
from curtsy.airflow.hook import DEFAULT, CurtsyHook
from curtsy.airflow.trigger import CurtsyHostSlotTrigger
from curtsy.core.errors import UsageError
from curtsy.rules.urls import host_named

_current: ContextVar[HeldTurn] = ContextVar("curtsy_turn")


def current_turn() -> HeldTurn:
    """The turn that the function of a `@polite_slot` task holds."""
    try:
        return _current.get()
    except LookupError:
        raise UsageError("No turn is held here: call it inside a function under @polite_slot.") from None


@contextmanager
def host_turn(where: str, *, curtsy_conn_id: str = DEFAULT, delay_s: float | None = None) -> Iterator[HeldTurn]:
    """A turn inside any task: waits on the worker. For further requests of a task that has its worker anyway."""
    with Desk(CurtsyHook(curtsy_conn_id).place().settings()) as desk:
        held = desk.take(host_named(where, desk.settings.politeness_unit), delay_s)
        assert held is not None
        with desk.holding(held):
            yield held


class PoliteSlotOperator(DecoratedOperator, PythonOperator):
    """What `@polite_slot` makes of a function."""

    template_fields: Sequence[str] = (*PythonOperator.template_fields, "host")
    custom_operator_name = "@polite_slot"

    def __init__(
        self, *, python_callable: Callable[..., Any], op_args: Any, op_kwargs: Any, host: str | None = None,
        delay_s: float | None = None, patience_s: float = 5.0, curtsy_conn_id: str = DEFAULT, deferrable: bool = True,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        upstream = {"python_callable": python_callable, "op_args": op_args, "op_kwargs": op_kwargs}
        super().__init__(
            kwargs_to_upstream=upstream, python_callable=python_callable, op_args=op_args, op_kwargs=op_kwargs, **kwargs
        )
        self.host, self.delay_s, self.patience_s = host, delay_s, patience_s
        self.curtsy_conn_id, self.deferrable = curtsy_conn_id, deferrable

    def execute(self, context: Any) -> Any:
        settings = CurtsyHook(self.curtsy_conn_id).place().settings()
        host = host_named(self.host or self._argument(), settings.politeness_unit)
        with Desk(settings) as desk:
            held = desk.take(host, self.delay_s, self.patience_s if self.deferrable else None)
            if held is not None:
                self.log.info("It is this task's turn on %s for %.1f s.", host, held.left_s)
                with desk.holding(held):
                    return self._with_turn(held, context)
        trigger = CurtsyHostSlotTrigger(host=host, curtsy_conn_id=self.curtsy_conn_id, delay_s=self.delay_s)
        self.log.info("Others are on %s: this task waits in the triggerer.", host)
        self.defer(trigger=trigger, method_name="execute_complete")
        return None

    def execute_complete(self, context: Any, event: Any = None) -> Any:
        """The turn is likely to be had: that is all that the event says."""
        return self.execute(context)

    def _with_turn(self, held: HeldTurn, context: Any) -> Any:
        mark = _current.set(held)
        try:
            return super().execute(context)
        finally:
            _current.reset(mark)

    def _argument(self) -> str:
        """Without `host`, it is that of the function's argument `url`."""
        bound = inspect.signature(self.python_callable).bind_partial(*self.op_args, **self.op_kwargs)
        url = bound.arguments.get("url")
        if not isinstance(url, str):
            raise UsageError("Which host? Give @polite_slot(host=...), or the function an argument `url`.")
        return url


def polite_slot(python_callable: Callable[..., Any] | None = None, **kwargs: Any) -> Any:
    """A TaskFlow task that runs while it holds a host's turn; also `@task.polite_slot`.

    `host`: a name or a URL, templated; without it that of the function's argument `url`. `delay_s`: at least this pause
    before the host's next turn. `patience_s`: how long it waits on a worker before it defers. The rest as of `@task`.
    """
    return task_decorator_factory(
        python_callable=python_callable, decorated_operator_class=PoliteSlotOperator, **kwargs
    )
