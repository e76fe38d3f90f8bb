"""Headers of requests and responses: what is sent, what a WARC file may contain of it, what came back."""

from __future__ import annotations

from typing import NamedTuple

from curtsy.fetch.content_codings import ACCEPT_ENCODING
from curtsy.fetch.guard import Target

Headers = tuple[tuple[str, str], ...]

_ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

#: extra headers that a WARC request record may contain; all others may carry credentials
_PUBLIC_HEADERS = frozenset(("if-none-match", "if-modified-since", "accept", "accept-language"))

BASE_HEADERS = (f"Accept: {_ACCEPT}", f"Accept-Encoding: {ACCEPT_ENCODING}")
_BASE_TEXT = "\r\n".join(BASE_HEADERS)


def request_head(url: str, target: Target, user_agent: str, extra: Headers) -> bytes:
    """The request as it was sent, in HTTP/1.1 form, without the headers that may carry credentials."""
    path = url[len(target.scheme) + 3 + len(target.authority) :]
    lines = "".join(f"{n}: {v}\r\n" for n, v in extra if n.lower() in _PUBLIC_HEADERS) if extra else ""
    start = f"GET {path} HTTP/1.1\r\nHost: {target.authority}\r\nUser-Agent: {user_agent}\r\n"
    return f"{start}{_BASE_TEXT}\r\n{lines}\r\n".encode("latin-1", "replace")


def raw_request(url: str, target: Target, user_agent: str, extra: Headers) -> bytes:
    """The bytes of a request that libcurl does not send, with all headers. The connection serves only this one."""
    path = url[len(target.scheme) + 3 + len(target.authority) :]
    start = f"GET {path} HTTP/1.1\r\nHost: {target.authority}\r\nUser-Agent: {user_agent}\r\nConnection: close\r\n"
    base = BASE_HEADERS[1:] if any(name.lower() == "accept" for name, _ in extra) else BASE_HEADERS
    own = (f"{name}: {value}" for name, value in extra if _is_clean(name + value))
    return "\r\n".join((start + base[0], *base[1:], *own, "", "")).encode("latin-1", "replace")


def header_lines(extra: Headers) -> list[str]:
    """All header lines of a request, as libcurl expects them; an extra `Accept` replaces ours."""
    base = BASE_HEADERS[1:] if any(name.lower() == "accept" for name, _ in extra) else BASE_HEADERS
    return [*base, *(_header_line(name, value) for name, value in extra if _is_clean(name + value))]


def _is_clean(text: str) -> bool:
    return not any(c in text for c in "\r\n\0")


def _header_line(name: str, value: str) -> str:
    # libcurl reads "Name:" as the command to omit the header.
    return f"{name}: {value}" if value else f"{name};"


class Head(NamedTuple):
    """Status line and headers of the final response."""

    status: int = 0
    #: `HTTP/1.1`
    version: str = ""
    headers: Headers = ()
    #: the empty line that ends it was seen
    complete: bool = False


#: most header lines are the same from page to page: parsed lines are cached
_known_lines: dict[bytes, tuple[str, str] | None] = {}
_MAX_KNOWN_LINES = 4096


def read_head(lines: list[bytes]) -> Head:
    """Ignores interim responses, trailers and invalid lines."""
    first, end = (0, len(lines) - 1) if lines.count(b"\r\n") == 1 and lines[-1] == b"\r\n" else _final_block(lines)
    if first is None:
        return Head()
    if len(_known_lines) > _MAX_KNOWN_LINES:
        _known_lines.clear()
    headers = []
    for line in lines[first + 1 : end]:
        try:
            pair = _known_lines[line]
        except KeyError:
            pair = _known_lines[line] = _pair(line)
        if pair is not None:
            headers.append(pair)
    version, _, rest = lines[first].decode("latin-1").partition(" ")
    code = rest.rstrip("\r\n").partition(" ")[0]
    status = int(code) if len(code) == 3 and code.isdigit() and code.isascii() else 0
    return Head(status, version, tuple(headers), end < len(lines))


def _final_block(lines: list[bytes]) -> tuple[int | None, int]:
    first = next((i for i in range(len(lines) - 1, -1, -1) if lines[i].startswith(b"HTTP/")), None)
    end = next((i for i in range(first or 0, len(lines)) if lines[i] in (b"\r\n", b"\n")), len(lines))
    return first, end


def _pair(line: bytes) -> tuple[str, str] | None:
    name, colon, value = line.decode("latin-1").partition(":")
    name = name.strip()
    return (name, value.strip(" \t\r\n")) if colon and name else None


def body_headers(head: Head) -> tuple[str | None, str | None, int | None]:
    """(content coding, content type, length) of the body, by its headers."""
    coding = content_type = None
    length = None
    for name, value in head.headers:
        if len(name) > 16 or len(name) < 12:
            continue
        lower = name.lower()
        if lower == "content-encoding":
            coding = value if coding is None else f"{coding}, {value}"
        elif lower == "content-type" and content_type is None:
            content_type = value
        elif lower == "content-length" and value.isdigit() and value.isascii():
            length = int(value)
    return coding, content_type, length


def type_kept(content_type: str | None, keep_types: tuple[str, ...] | None) -> bool:
    """A body without a type may be anything, so it is kept."""
    if keep_types is None or not content_type:
        return True
    essence = content_type.partition(";")[0].strip().lower()
    return not essence or any(essence == t or (t.endswith("/") and essence.startswith(t)) for t in keep_types)
