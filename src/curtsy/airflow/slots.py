"""`@polite_slot`: a task whose function runs only while it holds a slot of its host, and waits without a worker.

Invariant: the function runs only in the process that took the slot, and only until the slot expires by that process's
clock. A trigger takes no slot and passes none on; it only decides when to try.

1. The task starts on a worker and requests the slot for at most `patience_s`. With a slot, continue at 3.
2. Otherwise it defers. The trigger queues for the host and fires when a slot is likely to be free: continue at 1.
   A task that loses the race (to a crawl, a spider, another task) defers again.
3. The function runs. If it still runs when the slot expires, it is aborted with SlotExpired.
4. The slot is released, and the delay of the host starts. If the process is killed, the slot expires, and the delay
   starts then.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk.bases.decorator import DecoratedOperator, task_decorator_factory

from curtsy.airflow.deferring import default_deferrable
from curtsy.airflow.held_slot import HeldSlot, SlotThread
from curtsy.airflow.hook import DEFAULT, CurtsyHook
from curtsy.airflow.trigger import CurtsyHostSlotTrigger
from curtsy.core.errors import UsageError
from curtsy.rules.urls import host_named

_current: ContextVar[HeldSlot] = ContextVar("curtsy_slot")


def current_slot() -> HeldSlot:
    """The slot that the function of a `@polite_slot` task holds."""
    try:
        return _current.get()
    except LookupError:
        raise UsageError("There is no slot here. Call current_slot() inside a function with @polite_slot.") from None


@contextmanager
def host_slot(where: str, *, curtsy_conn_id: str = DEFAULT, delay_s: float | None = None) -> Iterator[HeldSlot]:
    """A slot inside any task. It waits on the worker: use it for further requests of a running task."""
    with SlotThread(CurtsyHook(curtsy_conn_id).place().settings()) as thread:
        held = thread.take(host_named(where, thread.settings.politeness_unit), delay_s)
        assert held is not None
        with thread.holding(held):
            yield held


class PoliteSlotOperator(DecoratedOperator, PythonOperator):
    """The operator of `@polite_slot`."""

    template_fields: Sequence[str] = (*PythonOperator.template_fields, "host")
    custom_operator_name = "@polite_slot"

    def __init__(
        self, *, python_callable: Callable[..., Any], op_args: Any, op_kwargs: Any, host: str | None = None,
        delay_s: float | None = None, patience_s: float = 0.0, curtsy_conn_id: str = DEFAULT,
        deferrable: bool | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        upstream = {"python_callable": python_callable, "op_args": op_args, "op_kwargs": op_kwargs}
        super().__init__(
            kwargs_to_upstream=upstream, python_callable=python_callable, op_args=op_args, op_kwargs=op_kwargs, **kwargs
        )
        self.host, self.delay_s, self.patience_s = host, delay_s, patience_s
        self.curtsy_conn_id = curtsy_conn_id
        self.deferrable = default_deferrable() if deferrable is None else deferrable

    def execute(self, context: Any) -> Any:
        settings = CurtsyHook(self.curtsy_conn_id).place().settings()
        host = host_named(self.host or self._argument(), settings.politeness_unit)
        with SlotThread(settings) as thread:
            held = thread.take(host, self.delay_s, self.patience_s if self.deferrable else None)
            if held is not None:
                self.log.info("Slot of %s taken for %.1f s.", host, held.left_s)
                with thread.holding(held):
                    return self._with_slot(held, context)
        trigger = CurtsyHostSlotTrigger(host=host, curtsy_conn_id=self.curtsy_conn_id, delay_s=self.delay_s)
        self.log.info("%s is busy: this task waits in the triggerer.", host)
        self.defer(trigger=trigger, method_name="execute_complete")
        return None

    def execute_complete(self, context: Any, event: Any = None) -> Any:
        """Try again: the event only means that a slot is likely to be free."""
        return self.execute(context)

    def _with_slot(self, held: HeldSlot, context: Any) -> Any:
        mark = _current.set(held)
        try:
            return super().execute(context)
        finally:
            _current.reset(mark)

    def _argument(self) -> str:
        """Without `host`, the host of the function's argument `url`."""
        bound = inspect.signature(self.python_callable).bind_partial(*self.op_args, **self.op_kwargs)
        url = bound.arguments.get("url")
        if not isinstance(url, str):
            raise UsageError("The host is missing. Use @polite_slot(host=...), or give the function an argument `url`.")
        return url


def polite_slot(python_callable: Callable[..., Any] | None = None, **kwargs: Any) -> Any:
    """A TaskFlow task that runs while it holds a host slot; also `@task.polite_slot`.

    `host`: a name or a URL, templated; default: the host of the function's argument `url`. `delay_s`: minimum delay
    before the next slot of the host. `patience_s`: how long it waits on a worker before it defers; by default it does
    not wait. Other arguments are those of `@task`.
    """
    return task_decorator_factory(
        python_callable=python_callable, decorated_operator_class=PoliteSlotOperator, **kwargs
    )
