"""Where settings come from: defaults, then `curtsy.toml` (or --config, or CURTSY_CONFIG), then environment CURTSY_*,
then the command line. Also checks that they are consistent, and chooses those that are stored with a crawl.
"""

from __future__ import annotations

import os
import tomllib
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import ValidationError
from pydantic_settings import SettingsError as EnvironmentFault

from curtsy.core import secret_files
from curtsy.core.errors import SettingsError
from curtsy.core.settings import PREFIX, HostRule, Settings

#: environment variable with the path of the settings file
_CONFIG = "CURTSY_CONFIG"
#: variables that begin with PREFIX and are not settings: of tests, and of workers for their settings and parent
NO_SETTINGS = (
    "CURTSY_MCP_KEY",
    "CURTSY_FAULT",
    "CURTSY_SLOW_PAGE",
    "CURTSY_COMPILED",
    "CURTSY_READER",
    "CURTSY_FRONTIER_EXAMPLES",
    _CONFIG,
    "CURTSY_PARENT_PID",
    "CURTSY_KEEPER",  # deprecated name of CURTSY_PARENT_PID
    "CURTSY_API_URL",
    "CURTSY_API_KEY",
)
#: deprecated name of a setting -> its name; removed in the next version
OLD_NAMES = {"worker_seats": "worker_processes"}
#: settings of the deployment, not of a crawl: location, logging, API and fleet, retention
_DEPLOYMENT_SETTINGS = {
    "data_dir", "store_url", "log_level", "log_format", "flower_url", "bind_shards", "broker_url", "worker_processes",
    "webhook_secret", "webhook_old_secret", "chromium",
    *(name for name in Settings.model_fields if name.startswith(("api_", "retain_"))),
}  # fmt: skip
#: table of a settings file with the options of a crawl; it is not a setting
CRAWL_TABLE = "crawl"
#: profiles that come with the package, usable as --config NAME
BUILT_IN_PROFILES = {"tinyweb.toml": Path(__file__).parent.parent / "tinyweb" / "tinyweb.toml"}


def from_file(config: Path | None) -> dict[str, Any]:
    """The values of that file, or of the one that the environment names, or of `curtsy.toml` in the current folder."""
    named = config or of_environment()
    path = named or Path("curtsy.toml")
    if named is not None and not path.exists():
        built_in = BUILT_IN_PROFILES.get(str(named))
        if built_in is None:
            mend = "Give --config" if config is not None else f"The variable {_CONFIG} names it: give it"
            raise SettingsError(f"There is no settings file {named}. {mend} an existing TOML file.")
        path = built_in
    try:
        return tomllib.loads(path.read_text("utf-8")) if path.exists() else {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise SettingsError(f"{path} cannot be read as TOML: {error}") from error


def crawl_table(config: Path | None) -> dict[str, Any]:
    """The table [crawl] of the settings file: what `curtsy crawl` does without options. Its paths are relative to the
    file.
    """
    found = from_file(config).get(CRAWL_TABLE, {})
    if not isinstance(found, dict):
        raise SettingsError("[crawl] of the settings file must be a table: options of a crawl, by name.")
    folder = (config or of_environment() or Path("curtsy.toml")).parent
    paths = {name: str(folder / found[name]) for name in ("seeds", "out") if isinstance(found.get(name), str)}
    if str(found.get("schema", "")).endswith(".json"):
        paths["schema"] = str(folder / found["schema"])
    return found | paths


def of_environment() -> Path | None:
    """The settings file from the environment or the current folder."""
    given = os.environ.get(_CONFIG)
    return Path(given) if given else None


def load(config: Path | None = None, kept: Mapping[str, Any] | None = None, **overrides: Any) -> Settings:
    """Settings from file, environment and overrides (None means not given); checks the chain of time limits.

    `kept` are those of a crawl that is resumed. They override `curtsy.toml` in the current folder, and everything
    explicit overrides them.
    """
    told = _with_new_names({name: value for name, value in from_file(config).items() if name != CRAWL_TABLE})
    is_named = config is not None or of_environment() is not None
    given = _with_new_names({key: value for key, value in overrides.items() if value is not None})
    try:
        # The environment must win over the file, and the command line over both.
        from_env = _old_variables() | Settings().model_dump(exclude_unset=True)
    except EnvironmentFault as error:
        raise _errors().unreadable(error) from error
    except ValidationError as error:
        raise _errors().invalid(error, of_environment=True) from error
    from_crawl = {name: value for name, value in (kept or {}).items() if name in Settings.model_fields}
    from_both = {**from_crawl, **told} if is_named else {**told, **from_crawl}
    values = {**from_both, **from_env, **given}
    if wrong := _numbers_as_booleans(values):
        raise _errors().booleans(wrong)
    try:
        settings = Settings(**values)
    except ValidationError as error:
        raise _errors().invalid(error, of_environment=False) from error
    check_chain(settings)
    return _as_hosts_are_named(settings)


def _numbers_as_booleans(values: Mapping[str, Any]) -> list[tuple[list[str], bool]]:
    """`delay_s = true` is not a delay of one second, which Pydantic makes of it."""
    hosts = values.get("hosts")
    rules = hosts.items() if isinstance(hosts, dict) else ()
    nested = [
        ([name, host, key], value)
        for name, host, rule in (("hosts", *one) for one in rules)
        if isinstance(rule, dict)
        for key, value in rule.items()
        if isinstance(value, bool) and key in HostRule.model_fields
    ]
    fields = Settings.model_fields
    return nested + [
        ([name], value)
        for name, value in values.items()
        if isinstance(value, bool) and name in fields and fields[name].annotation is not bool
    ]


def load_with_notes(note: Callable[[str], object], config: Path | None = None, **overrides: Any) -> Settings:
    """Like `load`, but passes deprecation warnings to `note`: Python hides them from users of a command."""
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always", DeprecationWarning)
        settings = load(config, **overrides)
    for warning in raised:
        note(str(warning.message))
    return settings


def _with_new_names(given: dict[str, Any]) -> dict[str, Any]:
    for old, new in OLD_NAMES.items():
        if old in given:
            _warn_of(f"The setting {old}", new)
            given = {new: given[old]} | {name: value for name, value in given.items() if name != old}
    return given


def _old_variables() -> dict[str, Any]:
    """Settings from variables with deprecated names."""
    found: dict[str, Any] = {}
    for old, new in OLD_NAMES.items():
        if (value := os.environ.get(PREFIX + old.upper())) is not None:
            _warn_of(f"The variable {PREFIX + old.upper()}", PREFIX + new.upper())
            found[new] = value
    return found


def _warn_of(what: str, new: str) -> None:
    message = f"{what} is deprecated and will be removed in the next version. Use {new}."
    warnings.warn(message, DeprecationWarning, stacklevel=4)


def _as_hosts_are_named(settings: Settings) -> Settings:
    """`Example.com:80` is `example.com`: URLs lose the default port of their scheme. Also as written, for a server
    with https on port 80.
    """
    denied = dict.fromkeys(name for given in settings.deny_hosts for name in _names(given))
    written = {host.lower(): rule for host, rule in settings.hosts.items()}
    rules = {name: rule for host, rule in written.items() for name in _names(host)} | written
    changes = {"deny_hosts": (tuple(denied), settings.deny_hosts), "hosts": (rules, settings.hosts)}
    return settings.model_copy(update={name: new for name, (new, old) in changes.items() if new != old})


def _names(host: str) -> tuple[str, ...]:
    host = host.lower()
    name, _, port = host.rpartition(":")
    return (host, name.rstrip(".") or name) if name and port in ("80", "443") else (host,)


def keep(settings: Settings) -> dict[str, Any]:
    """What is stored with a crawl, so that resuming it needs no options: `settings`, and the names of those that were
    `withheld` because they may hold secrets.
    """
    given = settings.model_dump(mode="json", exclude_unset=True, exclude=_DEPLOYMENT_SETTINGS)
    withheld = sorted(name for name, value in given.items() if value and _may_hold_secrets(name, value))
    return {"settings": {name: given[name] for name in sorted(given) if name not in withheld}, "withheld": withheld}


def missing(kept: Mapping[str, Any], settings: Settings) -> list[str]:
    """Settings of a crawl that are not stored and were not given again."""
    return [name for name in kept.get("withheld", ()) if name not in settings.model_fields_set]


def _may_hold_secrets(name: str, value: Any) -> bool:
    if name == "hosts":
        return any(rule.get("headers") for rule in value.values())
    return name in ("proxies", "llm_api_key", "llm_judge_api_key") or (
        name.endswith("_url") and ("@" in value or "password=" in value)
    )


def _errors() -> ModuleType:
    from curtsy.core import settings_errors  # start-up: for invalid settings only

    return settings_errors


def unknown_variables(environment: Iterable[str]) -> list[str]:
    """One line for each variable that looks like a setting but is unknown, with the most similar setting."""
    names = sorted(name for name in environment if name.startswith(PREFIX) and name not in NO_SETTINGS)
    known = {*Settings.model_fields, *OLD_NAMES}
    unknown = [name for name in names if not _is_known(name, known)]
    return [
        f"There is no setting {name} (it is ignored){_errors().perhaps(name[len(PREFIX) :].lower(), PREFIX)}."
        for name in unknown
    ]


def _is_known(variable: str, known: Collection[str]) -> bool:
    name = variable[len(PREFIX) :].lower()
    of_a_file = name.removesuffix(secret_files.ENDING.lower())
    return name.split("__")[0] in known or of_a_file in known or PREFIX + of_a_file.upper() in NO_SETTINGS


# The chain of time limits


def check_chain(settings: Settings) -> None:
    """Check the chain of time limits: no request may be sent, or still run, on an expired slot."""
    needed = settings.start_slack_s + settings.fetch_timeout_s + settings.slot_margin_s
    if not needed < settings.slot_s:
        raise SettingsError(
            f"start_slack_s {settings.start_slack_s} + fetch_timeout_s {settings.fetch_timeout_s} + slot_margin_s "
            f"{settings.slot_margin_s} = {needed} must be less than slot_s {settings.slot_s}: raise slot_s above "
            f"{needed} or lower fetch_timeout_s."
        )
    needed = settings.start_slack_s + settings.render_timeout_s + settings.slot_margin_s
    if not needed < settings.render_slot_s:
        raise SettingsError(
            f"start_slack_s {settings.start_slack_s} + render_timeout_s {settings.render_timeout_s} + slot_margin_s "
            f"{settings.slot_margin_s} = {needed} must be less than render_slot_s {settings.render_slot_s}: raise "
            f"render_slot_s above {needed} or lower render_timeout_s."
        )
    if not settings.heartbeat_s * 2 < settings.url_lease_s:
        raise SettingsError(
            f"heartbeat_s {settings.heartbeat_s} must be less than half of url_lease_s {settings.url_lease_s}."
        )
    if settings.connect_timeout_s > settings.fetch_timeout_s:
        raise SettingsError(
            f"connect_timeout_s {settings.connect_timeout_s} must not exceed fetch_timeout_s "
            f"{settings.fetch_timeout_s}."
        )
    if settings.max_document_mb > settings.document_memory_mb:
        raise SettingsError(
            f"max_document_mb {settings.max_document_mb:g} must not exceed document_memory_mb "
            f"{settings.document_memory_mb:g}: a document of that size would never have room. Raise document_memory_mb."
        )
    if settings.proxies and (unknown := [pool for pool in settings.proxy_dns if pool not in settings.proxies]):
        raise SettingsError(f"proxy_dns names the pool {unknown[0]!r}, which proxies does not have.")
    _check_tasks(settings)
    _check_model(settings)


def _check_tasks(settings: Settings) -> None:
    """Check that a shift ends before Celery ends it, and that no message is delivered again while its task may run."""
    soft, hard, visible = settings.task_soft_limit_s, settings.task_hard_limit_s, settings.visibility_timeout_s
    if not settings.longest_shift_s < soft < hard < visible:
        raise SettingsError(
            f"shift_s {settings.shift_s} + fetch_timeout_s {settings.fetch_timeout_s} + commit_timeout_s "
            f"{settings.commit_timeout_s} = {settings.longest_shift_s} must be less than task_soft_limit_s {soft}, "
            f"that less than task_hard_limit_s {hard}, and that less than visibility_timeout_s {visible}."
        )
    if not hard + settings.longer_render_s < visible:
        raise SettingsError(
            f"task_hard_limit_s {hard} + render_timeout_s {settings.render_timeout_s} - fetch_timeout_s "
            f"{settings.fetch_timeout_s} = {hard + settings.longer_render_s} must be less than visibility_timeout_s "
            f"{visible}: raise visibility_timeout_s, or lower render_timeout_s."
        )


def _check_model(settings: Settings) -> None:
    """Check that the model is configured, and that its time limit ends before another worker starts the same stage."""
    if settings.llm_kind == "endpoint" and not (settings.llm_url and settings.llm_model):
        raise SettingsError("llm_url and llm_model must both be set to ask a language model (docs/how-to/models.md).")
    if settings.llm_kind != "none" and not settings.llm_timeout_s < settings.stage_lease_s:
        raise SettingsError(
            f"llm_timeout_s {settings.llm_timeout_s} must be less than stage_lease_s {settings.stage_lease_s}."
        )
