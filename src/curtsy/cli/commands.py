"""How commands are declared: options in named groups, and modules that are imported only for their own command."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from importlib import import_module
from typing import Any, get_type_hints

import typer.main
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from curtsy.cli.show import note

#: the order in which help lists groups of options; options without a group come first
PANELS = ("Options", "Scope", "Politeness", "Rendering", "Records", "Output", "Network", "Storage")
_HELP_NAMES = {"help_option_names": ["-h", "--help"]}


class Command(TyperCommand):
    """A command whose help lists its options in named groups, one line each where they fit."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _write_parameters(self.get_params(ctx), ctx, formatter)


class Group(TyperGroup):
    """A group of commands. Its help needs only the names and summaries of the commands."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _write_parameters(self.get_params(ctx), ctx, formatter)
        self.format_commands(ctx, formatter)


class Commands(typer.Typer):
    """A group of commands, such as `curtsy hosts ...`."""

    def __init__(self, summary: str, **settings: Any) -> None:
        super().__init__(
            help=summary, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
            rich_markup_mode=None, cls=Group, context_settings=_HELP_NAMES, **settings,
        )  # fmt: skip

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        context = _HELP_NAMES | settings.pop("context", {})
        declare = super().command(name, cls=Command, context_settings=context, **settings)
        return lambda command: declare(_with_options(command))


class LazyCommand(TyperCommand):
    """Placeholder for a command until it is used or its help is shown; then its module is imported."""

    def __init__(
        self,
        name: str,
        where: str,
        summary: str,
        *,
        hidden: bool = False,
        renamed_to: str | None = None,
        **context: Any,
    ) -> None:
        super().__init__(name, help=summary, hidden=hidden or renamed_to is not None, rich_markup_mode=None)
        self._where, self._renamed_to, self._context = where, renamed_to, context

    def load(self) -> Any:
        module, _, attribute = self._where.partition(":")
        try:
            found = getattr(import_module(module), attribute)
        finally:
            collect_garbage()
        if not isinstance(found, typer.Typer):
            alone = Commands(self.help or "")
            alone.command(self.name, hidden=self.hidden, context=self._context)(found)
            return typer.main.get_command(alone)
        loaded = typer.main.get_group(found)
        loaded.name, loaded.hidden = self.name, self.hidden
        return loaded

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        if self._renamed_to is not None:
            old, new = f"curtsy {self.name}", f"curtsy {self._renamed_to}"
            note(f"curtsy: `{old}` is deprecated and will be removed in the next version. Use `{new}`.")
        return self.load().make_context(info_name, args, parent=parent, **extra)


def replaced(
    command: Callable[..., None], parameter: str, options: Mapping[str, tuple[Any, Any]], make: Callable[..., Any]
) -> Callable[..., None]:
    """The command with options (name -> annotation, default) in place of a parameter, which `make(**used)` makes."""
    signature, hints = inspect.signature(command), get_type_hints(command, include_extras=True)
    own = [one.replace(annotation=hints[one.name]) for one in signature.parameters.values() if one.name != parameter]
    kind = inspect.Parameter.KEYWORD_ONLY
    added = [
        inspect.Parameter(name, kind, default=default, annotation=note) for name, (note, default) in options.items()
    ]

    @wraps(command)
    def called(**values: Any) -> None:
        made = make(**{name: values.pop(name) for name in options})
        command(**values, **{parameter: made})

    parameters = [*own, *added]
    called.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {one.name: one.annotation for one in parameters} | {"return": None}
    del called.__wrapped__
    return called


def _with_options(command: Callable[..., None]) -> Callable[..., None]:
    """A parameter whose type has OPTIONS stands for these options."""
    for name, kind in get_type_hints(command, include_extras=True).items():
        if hasattr(kind, "OPTIONS"):
            options = {one: (note, getattr(kind, one)) for one, note in kind.OPTIONS.items()}
            return replaced(command, name, options, kind)
    return command


def collect_garbage(after: int = 20_000) -> None:
    """Collect garbage from now on, after this number of new objects. What was imported is never searched."""
    gc.freeze()
    gc.set_threshold(after, 20, 20)
    gc.enable()


def _write_parameters(parameters: list[Any], ctx: Any, formatter: Any) -> None:
    arguments = [_row(one, ctx) for one in parameters if isinstance(one, TyperArgument) and not one.hidden]
    if arguments:
        with formatter.section("Arguments"):
            formatter.write_dl(arguments)
    options = [one for one in parameters if isinstance(one, TyperOption) and not one.hidden]
    panels: dict[str, list[tuple[str, str]]] = {name: [] for name in PANELS}
    for option in options:
        panels.setdefault(option.rich_help_panel or PANELS[0], []).append(_row(option, ctx))
    for name, rows in panels.items():
        if rows:
            with formatter.section(name):
                formatter.write_dl(rows, col_max=34)


def _row(parameter: Any, ctx: Any) -> tuple[str, str]:
    named = (
        parameter.metavar or parameter.name
        if isinstance(parameter, TyperArgument)
        else parameter.get_help_record(ctx)[0]
    )
    return named, " ".join([parameter.help or "", *_notes(parameter)]).strip()


def _notes(parameter: Any) -> Iterator[str]:
    """Notes in addition to the description. Ranges are omitted: an error message names them."""
    default = parameter.default
    if parameter.required and isinstance(parameter, TyperOption):
        yield "[required]"
    elif isinstance(parameter.show_default, str):
        yield f"[default: {parameter.show_default}]"
    elif parameter.show_default and default is True and parameter.secondary_opts:
        yield f"[default: {parameter.opts[0]}]"
    elif parameter.show_default and isinstance(default, str | int | float) and not isinstance(default, bool):
        yield f"[default: {default}]"
