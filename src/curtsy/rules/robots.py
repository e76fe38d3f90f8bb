"""robots.txt by RFC 9309, and by Google's matcher where the RFC is silent. No I/O; bad content never raises.

A file is a list of groups; a group names agents and then has rules. All groups that name our product token count
together; if none does, the groups for `*` do. The longest matching rule wins, and `allow` wins a tie.
Where the two sources differ, the RFC holds: percent-encoded unreserved characters are decoded before comparison, and
characters that a URL cannot hold (`/my folder/`) are escaped; `/robots.txt` is always allowed, and lines other than
rules never end a group.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from curtsy.core.model import hot_value

#: the RFC asks for 500 KiB at least; the rest is not read
MAX_BYTES = 500 * 1024
#: as in Google's parser: eight times the longest URL a browser takes; the rest of a line is dropped
_MAX_LINE_BYTES = 2083 * 8 - 1

_BLANK = " \t\n\v\f\r"
_LINE_END = re.compile(rb"\r\n|\r|\n")
_PRODUCT_TOKEN = re.compile(r"[A-Za-z_-]*")
_ESCAPED = re.compile(r"%[0-9A-Fa-f]{2}")
#: characters that URLs hold only escaped, and "'", which the URL standard escapes in queries but not in paths
_NEVER_IN_URLS = re.compile(r"""[\x00-\x20"'<>\\^`{|}\x7f]""")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

# Keys match by prefix, and frequent typos count, as in Google's parser.
_KEYS = (
    ("agent", ("user-agent", "useragent", "user agent")),
    ("allow", ("allow",)),
    ("disallow", ("disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw")),
    ("sitemap", ("sitemap", "site-map")),
    ("delay", ("crawl-delay", "crawldelay", "crawl delay")),
)


@hot_value(kw_only=False)
class _Rule:
    allow: bool
    #: normal form: escapes decoded or in upper case, never empty
    pattern: str
    #: as written in the file, for display
    line: str


@dataclass(slots=True)
class _Group:
    agents: set[str] = field(default_factory=set)
    rules: list[_Rule] = field(default_factory=list)


class _Matcher:
    """The rules that hold for one agent, ready for lookups.

    Plain prefixes are looked up by length in a table, so that a file of thousands of rules costs little per URL;
    patterns with wildcards are tried from the longest on.
    """

    __slots__ = ("_lengths", "_prefixes", "_wild")

    def __init__(self, rules: list[_Rule]) -> None:
        self._prefixes: dict[str, _Rule] = {}
        wild: list[tuple[int, _Rule, _Glob]] = []
        for rule in _with_index_pages(rules):
            if "*" in rule.pattern or rule.pattern.endswith("$"):
                wild.append((len(rule.pattern), rule, _Glob(rule.pattern)))
            else:
                key = _literal(rule.pattern)
                known = self._prefixes.get(key)
                if known is None or (rule.allow and not known.allow):
                    self._prefixes[key] = rule
        self._lengths = sorted({len(key) for key in self._prefixes}, reverse=True)
        self._wild = sorted(wild, key=lambda item: (-item[0], not item[1].allow))

    def __bool__(self) -> bool:
        """Whether there are rules at all: most files have none for us, and then no path is needed."""
        return bool(self._lengths or self._wild)

    def decide(self, path: str) -> _Rule | None:
        """The rule that decides about a path in normal form; None: nothing matches, so it is allowed."""
        best: _Rule | None = None
        for length in self._lengths:
            if (best := self._prefixes.get(path[:length])) is not None:
                break
        size = -1 if best is None else len(best.pattern)
        for length, rule, glob in self._wild:
            if length < size or (length == size and (best is None or best.allow or not rule.allow)):
                break
            if glob.matches(path):
                return rule
        return best


class _Glob:
    """`*` stands for any run of characters, `$` at the end for the end. Linear: each piece is searched for once."""

    __slots__ = ("_anchored", "_first", "_last", "_middle")

    def __init__(self, pattern: str) -> None:
        self._anchored = pattern.endswith("$")
        first, *rest = [_literal(piece) for piece in (pattern[:-1] if self._anchored else pattern).split("*")]
        self._first = first
        self._last = rest.pop() if rest else None
        self._middle = [piece for piece in rest if piece]

    def matches(self, path: str) -> bool:
        if not path.startswith(self._first):
            return False
        at = len(self._first)
        for piece in self._middle:
            at = path.find(piece, at)
            if at < 0:
                return False
            at += len(piece)
        if self._last is None:
            return at == len(path)  # no wildcard: it is here for its "$"
        if not self._anchored:
            return path.find(self._last, at) >= 0
        return len(path) - len(self._last) >= at and path.endswith(self._last)


class Robots:
    """The rules of one origin."""

    __slots__ = ("_delays", "_groups", "_matchers", "sitemaps")

    ALLOW_ALL: ClassVar[Robots]
    FORBID_ALL: ClassVar[Robots]

    def __init__(self, groups: list[_Group], delays: dict[str, float], sitemaps: tuple[str, ...]) -> None:
        self._groups = groups
        self._delays = delays
        #: as written in the file: absolute by the protocol, but not checked
        self.sitemaps = sitemaps
        self._matchers: dict[str, _Matcher] = {}

    @classmethod
    def parse(cls, data: bytes) -> Robots:
        groups: list[_Group] = []
        delays: dict[str, float] = {}
        sitemaps: list[str] = []
        group = _Group()
        delayed: set[str] = set()  # the agents with a Crawl-delay line
        expects_agents = naming = False
        for key, value, line in _lines(data):
            if key == "agent":
                if not expects_agents:
                    group = _Group()
                    groups.append(group)
                if not naming:
                    delayed = set()
                expects_agents = naming = True
                group.agents.add(_agent(value))
                delayed.add(_agent(value))
                continue
            if key == "sitemap":
                sitemaps.append(value)
                continue
            naming = False
            if key == "delay":
                _note_delay(delays, delayed, value)
            elif groups:
                expects_agents = False
                if pattern := _normal(value):
                    group.rules.append(_Rule(key == "allow", pattern, line))
        return cls(groups, delays, tuple(sitemaps))

    def allows(self, url: str, agent: str) -> bool:
        """Whether the agent (a product token, or a User-Agent that begins with one) may request the URL."""
        decided = self._decide(url, agent)
        return decided is None or decided.allow

    def rule(self, url: str, agent: str) -> str | None:
        """The line that decided about the URL; None: no line did."""
        decided = self._decide(url, agent)
        return None if decided is None else decided.line

    def delay(self, agent: str) -> float | None:
        """Crawl-delay in seconds for the agent; the value of `*` does not apply to an agent with its own group."""
        token = _agent(agent)
        return self._delays.get(token if self._names(token) else "*")

    def _decide(self, url: str, agent: str) -> _Rule | None:
        matcher = self._matchers.get(agent)
        if matcher is None:
            matcher = self._matchers[agent] = self._compile(_agent(agent))
        if not matcher:
            return None
        path = _path_of(url)
        return None if path == "/robots.txt" else matcher.decide(path)

    def _compile(self, token: str) -> _Matcher:
        wanted = token if self._names(token) else "*"
        return _Matcher([rule for group in self._groups if wanted in group.agents for rule in group.rules])

    def _names(self, token: str) -> bool:
        return any(token in group.agents for group in self._groups)


def _lines(data: bytes) -> Iterator[tuple[str, str, str]]:
    """(key, value, line) of every line with a known key."""
    if len(data) > MAX_BYTES:
        # The line at the limit is omitted: half a rule may mean the opposite of the whole.
        data = data[:MAX_BYTES]
        data = data[: max(data.rfind(b"\n"), data.rfind(b"\r")) + 1]
    for raw in _LINE_END.split(data[_mark_length(data) :]):
        if not raw:
            continue
        line = raw[:_MAX_LINE_BYTES].partition(b"\0")[0].partition(b"#")[0].decode("utf-8", "surrogateescape")
        line = line.strip(_BLANK)
        name, value = _key_and_value(line)
        if name and (key := _key(name.lower())) is not None:
            yield key, value, line


def _mark_length(data: bytes) -> int:
    """A byte order mark is skipped, and so is the beginning of one, as in Google's parser."""
    mark = b"\xef\xbb\xbf"
    return next((n for n in (3, 2, 1) if data.startswith(mark[:n])), 0)


def _key_and_value(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if colon:
        return name.strip(_BLANK), value.strip(_BLANK)
    # People forget the colon: "disallow /x". Two words, or we do not guess.
    words = line.replace("\t", " ").split(" ")
    words = [word for word in words if word]
    return (words[0], words[1].strip(_BLANK)) if len(words) == 2 else ("", "")


def _key(name: str) -> str | None:
    return next((key for key, prefixes in _KEYS if name.startswith(prefixes)), None)


def _agent(value: str) -> str:
    """The product token in lower case; `*` may be followed by blank and anything, as in Google's parser."""
    if value.startswith("*") and (len(value) == 1 or value[1] in _BLANK):
        return "*"
    found = _PRODUCT_TOKEN.match(value)
    return found.group().lower() if found else ""


def _note_delay(delays: dict[str, float], agents: set[str], value: str) -> None:
    try:
        delay_s = float(value)
    except ValueError:
        return
    if 0 <= delay_s < float("inf"):
        for agent in agents:
            delays[agent] = max(delay_s, delays.get(agent, 0.0))


def _with_index_pages(rules: list[_Rule]) -> Iterator[_Rule]:
    """To allow /dir/index.html allows /dir/ too, as in Google's matcher."""
    for rule in rules:
        yield rule
        slash = rule.pattern.rfind("/")
        if rule.allow and slash >= 0 and rule.pattern.startswith("/index.htm", slash):
            yield _Rule(True, rule.pattern[: slash + 1] + "$", rule.line)


def _normal(text: str) -> str:
    """What URLs escape is escaped, escapes are in upper case, escaped unreserved characters decoded."""
    if not text.isascii():
        octets = text.encode("utf-8", "surrogateescape" if _only_escapes(text) else "replace")
        text = "".join(chr(octet) if octet < 0x80 else f"%{octet:02X}" for octet in octets)
    text = _NEVER_IN_URLS.sub(_escape, text)
    return _ESCAPED.sub(_unescape, text) if "%" in text else text


def _escape(found: re.Match[str]) -> str:
    return f"%{ord(found.group()):02X}"


def _only_escapes(text: str) -> bool:
    """Surrogates in the text represent undecodable bytes."""
    return all(not "\ud800" <= char <= "\udfff" or "\udc80" <= char <= "\udcff" for char in text)


def _unescape(found: re.Match[str]) -> str:
    escape = found.group()
    char = chr(int(escape[1:], 16))
    return char if char in _UNRESERVED else escape.upper()


def _literal(text: str) -> str:
    """The special characters as they are compared: escaped in rules, they must match the plain ones in URLs."""
    return text.replace("$", "%24").replace("*", "%2A") if "$" in text or "*" in text else text


def _path_of(url: str) -> str:
    """Path and query of a URL in the form that is compared; "/" if the path is empty."""
    scheme, slash = url.find("://"), url.find("/")
    start = scheme + 3 if 0 <= scheme < slash else 2 if url.startswith("//") else 0
    end = url.find("#")
    tail = url[start:] if end < 0 else url[start:end]
    begin = min((at for at in (tail.find("/"), tail.find("?"), tail.find(";")) if at >= 0), default=-1)
    if begin < 0:
        return "/"
    path = tail[begin:]
    if path[0] != "/":
        path = "/" + path
    return _literal(_normal(path))


Robots.ALLOW_ALL = Robots.parse(b"")
Robots.FORBID_ALL = Robots.parse(b"User-agent: *\nDisallow: /\n")
