"""What is wrong with the value of a setting: where it was given, what it must be, and an example.

Imported for invalid settings only.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from types import UnionType
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import NoDecode

from curtsy.core.errors import SettingsError
from curtsy.core.settings import PREFIX, HostRule, Settings

#: settings whose default is no example
_EXAMPLES: dict[str, Any] = {
    "allow_private": ["10.0.0.0/8"],
    "api_hosts": ["crawler.example.com"],
    "api_proxies": ["10.0.0.5"],
    "api_renderers": ["playwright"],
    "bind_shards": "0-7",
    "ca_file": "/etc/ssl/certs/ca-certificates.crt",
    "data_dir": "/srv/curtsy",
    "deny_hosts": ["ads.example.com"],
    "dns_servers": ["9.9.9.9", "[2620:fe::fe]:53"],
    "document_types": ["pdf", "docx"],
    "flower_url": "http://127.0.0.1:5555",
    "hosts": {"example.com": {"delay_s": 5}},
    "keep_types": ["text/html", "application/json"],
    "otel_endpoint": "http://127.0.0.1:4318",
    "proxies": {"default": ["http://127.0.0.1:3128"]},
    "proxy_dns": ["default"],
    "resolve": ["*.example.test=127.0.0.1:8080"],
    "shards": 4,
    "tracking_parameters": ["gclid", "utm_*"],
    "worker_processes": 4,
}
#: what texts with a pattern are
_TEXTS = {
    "agent": "one word of letters, '-' and '_'",
    "flower_url": "a URL that begins with http:// or https://",
    "otel_endpoint": "a URL that begins with http:// or https://",
}
_BOUNDS = {"ge": "at least {:g}", "gt": "more than {:g}", "le": "at most {:g}", "lt": "less than {:g}"}
#: names that belong to one crawl, with the option of `curtsy crawl`
_CRAWL_OPTIONS = {
    "cookies": "--cookies",
    "exclude": "--exclude",
    "include": "--include",
    "judge_model": "--judge-model",
    "lane": "--lane",
    "max_depth": "--max-depth",
    "max_pages": "--max-pages",
    "name": "--name",
    "proxy_pool": "--proxy-pool",
    "render": "--render",
    "rubric": "--rubric",
    "schema": "--schema",
    "scope": "--scope",
    "sitemaps": "--no-sitemaps",
    "tags": "--tag",
    "verify": "--verify",
    "webhook": "--webhook",
}
#: longer values are cut
_SHOWN = 60


def invalid(error: ValidationError, *, of_environment: bool) -> SettingsError:
    """One line for all values that are wrong."""
    return _joined(
        [_line([*e["loc"]], e["type"], e["msg"], e["input"], of_environment) for e in error.errors(include_url=False)]
    )


def unreadable(error: Exception) -> SettingsError:
    """A variable should have been JSON."""
    found = re.search(r'field "(\w+)"', str(error))
    if found is None or found[1] not in Settings.model_fields:
        return SettingsError(f"A setting in the environment cannot be read: {error}. Lists and tables are JSON.")
    name = found[1]
    given = os.environ.get(PREFIX + name.upper())
    instead = "" if given is None or _is_hidden([name]) else f", not {_shown(given)}"
    wanted = f"{_wanted(Settings.model_fields[name], name)} as JSON"
    return _joined([f"{PREFIX}{name.upper()} must be {wanted}{instead}{_example(name, True)}"])


def booleans(wrong: Sequence[tuple[Sequence[str], bool]]) -> SettingsError:
    """Numbers that are booleans, each with its keys."""
    return _joined([_line(where, "number", "", value, False) for where, value in wrong])


def perhaps(name: str, prefix: str = "") -> str:
    if name in _CRAWL_OPTIONS:
        return f": it is an option of each crawl, {_CRAWL_OPTIONS[name]} of `curtsy crawl`"
    near = get_close_matches(name, Settings.model_fields, n=1)
    if not near:
        return "; docs/reference/settings.md lists them"
    return f", perhaps you mean {prefix}{near[0].upper() if prefix else near[0]}"


def _joined(lines: list[str]) -> SettingsError:
    return SettingsError("Invalid settings (see docs/reference/settings.md): " + "; ".join(dict.fromkeys(lines)))


def _line(where: Sequence[str | int], kind: str, message: str, given: Any, of_environment: bool) -> str:
    parts = [str(part) for part in where]
    if kind == "extra_forbidden" and len(parts) == 1:
        return f"there is no setting {parts[0]!r}{perhaps(parts[0])}"
    if kind == "extra_forbidden" and len(parts) == 3:
        near = get_close_matches(parts[2], HostRule.model_fields, n=1)
        meant = f"perhaps you mean {near[0]}" if near else f"it can have {', '.join(HostRule.model_fields)}"
        return f"the rule of {parts[0]} for {parts[1]!r} has no {parts[2]!r}, {meant}"
    if not parts or parts[0] not in Settings.model_fields:
        return f"{'.'.join(parts) or 'settings'}: {message}"
    name = parts[0]
    label = PREFIX + name.upper() if of_environment else _key(parts)
    if kind == "value_error":
        said = message.removeprefix("Value error, ")
        return f"{label}: {said}" + (_example(name, of_environment) if "for example" not in said else "")
    inside = f"one with {_shown(given)}" if isinstance(where[-1], int) else _shown(given)
    instead = "" if _is_hidden(parts) else f", not {inside}"
    if len(parts) > 1 and of_environment and not isinstance(where[-1], int):
        label += f": {_key(parts)}"
    wanted = "a list of proxy URLs" if name == "proxies" and len(parts) > 1 else _wanted(_field(parts), parts[-1])
    return f"{label} must be {wanted}{instead}{_example(name, of_environment)}"


def _key(parts: Sequence[str]) -> str:
    """`hosts."a.test".delay_s`, and without the index of a list."""
    name, *rest = parts
    if name not in ("hosts", "proxies"):
        return name
    quoted = [f'"{rest[0]}"', *(part for part in rest[1:] if not part.isdigit())] if rest else []
    return ".".join([name, *quoted])


def _field(parts: Sequence[str]) -> FieldInfo | None:
    """The field that the error is about; None for the rule of a host."""
    if parts[0] != "hosts" or len(parts) == 1:
        return Settings.model_fields[parts[0]]
    return HostRule.model_fields.get(parts[2]) if len(parts) > 2 else None


def _wanted(field: FieldInfo | None, name: str) -> str:
    if field is None:
        return f"a table that can have {', '.join(HostRule.model_fields)}"
    kind = field.annotation
    if get_origin(kind) is UnionType or type(None) in get_args(kind):
        kind = next(one for one in get_args(kind) if one is not type(None))
    if get_origin(kind) is Literal:
        return f"one of {', '.join(map(str, get_args(kind)))}"
    if get_origin(kind) is tuple:
        return _list(get_args(kind)[0])
    if get_origin(kind) is dict:
        return "a table"
    if kind in (int, float):
        return ("a whole number" if kind is int else "a number") + _bounds(field)
    if kind is bool:
        return "true or false"
    if kind is Path:
        return "a path"
    least = next((one.min_length for one in field.metadata if hasattr(one, "min_length")), 0)
    return _TEXTS.get(name, f"a text of at least {least} characters" if least else "a text")


def _list(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return f"a list of some of {', '.join(map(str, get_args(kind)))}"
    return "a list of numbers" if kind is int else "a list of texts"


def _bounds(field: FieldInfo) -> str:
    found = [
        said.format(getattr(one, key)) for one in field.metadata for key, said in _BOUNDS.items() if hasattr(one, key)
    ]
    return f" of {' and '.join(found)}" if found else ""


def _shown(given: Any) -> str:
    said = repr(given.model_dump() if isinstance(given, BaseModel) else given)
    said = {"True": "true", "False": "false"}.get(said, said)
    return said if len(said) <= _SHOWN else said[:_SHOWN] + "..."


def _is_hidden(parts: Sequence[str]) -> bool:
    """The value may hold a password: an address, a key, or the headers of a host."""
    if parts[0] == "hosts":
        return len(parts) < 3 or parts[2] == "headers"
    return parts[0] == "proxies" or parts[0].endswith(("_url", "_key", "_secret"))


def _example(name: str, of_environment: bool) -> str:
    value = _EXAMPLES.get(name, Settings.model_fields[name].default)
    if value is None or value == ():
        return ""
    written = json.dumps(value, default=str)
    if of_environment:
        plain = str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else written
        if any(one is NoDecode for one in Settings.model_fields[name].metadata) and isinstance(value, list):
            plain = ",".join(value)
        quoted = f"'{plain}'" if re.search(r"[^\w./:@-]", plain) else plain
        return f"; for example {PREFIX}{name.upper()}={quoted}"
    if isinstance(value, dict):
        (key, inner), *_ = value.items()
        table = json.dumps(inner)
        if isinstance(inner, dict):
            table = f"{{ {', '.join(f'{one} = {json.dumps(its)}' for one, its in inner.items())} }}"
        return f'; for example {name}."{key}" = {table}'
    return f"; for example {name} = {written}"
