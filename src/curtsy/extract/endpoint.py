"""One call to an OpenAI-compatible server: request, response, and the meaning of each failure.

The address comes from the operator's settings, so the guard for crawl targets does not apply. Nothing else decides
where a call goes: no proxy, no environment variable, no redirect. A call ends within its time limit, even if the server
sends single bytes. It is never repeated here: the stage decides about retries. The one exception are servers that
reject a parameter: the call is repeated without it, and that is remembered.
"""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import certifi

from curtsy.core.claims import Claim, Usage
from curtsy.core.errors import CurtsyError, MissingPart
from curtsy.extract.chunks import tokens_of
from curtsy.rules.politeness import retry_after

Cause = Literal[
    "llm_unreachable", "llm_timeout", "llm_refused", "llm_rate_limited", "llm_garbage", "llm_cut_off", "llm_budget",
    "llm_batch", "llm_missing",
]  # fmt: skip
Message = Mapping[str, str]
#: headers that a call may have; all others that the client adds are removed (it reads the last one itself)
_HEADERS = frozenset(
    ("host", "accept", "accept-encoding", "connection", "content-type", "content-length", "user-agent",
     "x-stainless-raw-response")
)  # fmt: skip
_CONNECT_S = 10.0
_DETAIL_CHARS = 300
#: statuses that may mean that a parameter is unsupported
_UNKNOWING = frozenset((400, 404, 415, 422, 500, 501))
_TOO_LONG = ("context length", "context_length", "context size", "context window", "too long", "too large", "exceed")


class ModelFault(CurtsyError):
    """A model gave no usable answer: the cause, and whether a retry may help."""

    def __init__(self, cause: Cause, detail: str, again: bool = True, retry_after_s: float | None = None) -> None:
        super().__init__(detail)
        self.cause, self.detail, self.again, self.retry_after_s = cause, detail, again, retry_after_s
        #: usage of earlier calls, and what this one may have cost
        self.usage = Usage()
        #: answers to other questions about the same record
        self.claims: tuple[Claim, ...] = ()
        #: paths of the leaves for which there is no answer
        self.unanswered: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a model."""

    url: str
    model: str
    key: str | None = None

    def __repr__(self) -> str:
        return f"Endpoint({self.url!r}, {self.model!r})"


@dataclass(frozen=True, slots=True)
class CallOptions:
    """The parameters that a server supports. Starts with the most exact; unsupported ones are dropped."""

    form: Literal["json_schema", "json_object", "plain"] = "json_schema"
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    temperature: bool = True


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer."""

    text: str
    #: `stop`, or `length` if it was cut off
    finish: str
    prompt_tokens: int
    completion_tokens: int
    #: the parameters of the successful call
    options: CallOptions


def fallback(options: CallOptions, status: int, message: str) -> CallOptions | None:
    """Return the options to try after a rejection; None if other options cannot help."""
    message = message.casefold()
    if status not in _UNKNOWING or any(words in message for words in _TOO_LONG):
        return None
    if status in (404, 500) and not any(word in message for word in ("response_format", "json_schema", "grammar")):
        return None  # the model does not exist, or the server has failed
    if "max_completion_tokens" in message and options.limit == "max_tokens":
        return replace(options, limit="max_completion_tokens")
    if "temperature" in message and options.temperature:
        return replace(options, temperature=False)
    if options.form == "json_schema":
        return replace(options, form="json_object")
    return replace(options, form="plain") if options.form == "json_object" else None


def call(
    endpoint: Endpoint, messages: Sequence[Message], schema: Any, *, max_tokens: int, timeout_s: float,
    options: CallOptions,
) -> Reply:  # fmt: skip
    """Block for at most `timeout_s`; raise ModelFault if there is no answer."""
    _openai()  # the first import takes long, and is not the server's time
    deadline = time.monotonic() + timeout_s
    while True:
        body = request_body(endpoint, messages, schema, max_tokens, options)
        status, headers, content = _post(endpoint, body, deadline - time.monotonic())
        if status == 200:
            return _reply(content, messages, options)
        message = _error_text(content, endpoint)
        less = fallback(options, status, message)
        if less is None:
            raise _refusal(endpoint, status, headers, message)
        options = less


def models(endpoint: Endpoint, timeout_s: float) -> list[str]:
    """Return the names of the models that a server offers; for `doctor`."""
    status, headers, content = _post(endpoint, None, timeout_s)
    if status != 200:
        raise _refusal(endpoint, status, headers, _error_text(content, endpoint))
    try:
        return [str(one["id"]) for one in json.loads(content)["data"]]
    except (ValueError, KeyError, TypeError):
        raise ModelFault(
            "llm_garbage", f"{endpoint.url}/models did not return a list of models. Check llm_url."
        ) from None


def request_body(
    endpoint: Endpoint, messages: Sequence[Message], schema: Any, limit: int, options: CallOptions
) -> dict[str, Any]:
    body: dict[str, Any] = {"model": endpoint.model, "messages": list(messages), options.limit: limit}
    if options.temperature:
        body["temperature"] = 0
    if options.form == "json_schema":
        form = {"name": "answer", "strict": True, "schema": schema}
        body["response_format"] = {"type": "json_schema", "json_schema": form}
    elif options.form == "json_object":
        body["response_format"] = {"type": "json_object"}
    return body


def _post(endpoint: Endpoint, body: dict[str, Any] | None, timeout_s: float) -> tuple[int, Mapping[str, str], bytes]:
    """Return status, headers and body of any answer."""
    try:
        return asyncio.run(_sent(endpoint, body, max(0.001, timeout_s)))
    except TimeoutError:
        raise ModelFault("llm_timeout", f"{endpoint.url} gave no answer within {timeout_s:.0f} s") from None


async def _sent(endpoint: Endpoint, body: dict[str, Any] | None, timeout_s: float) -> tuple[int, Any, bytes]:
    if body is None:
        return await exchange(endpoint, lambda client: client.models.with_raw_response.list(), timeout_s)
    return await exchange(endpoint, lambda client: client.chat.completions.with_raw_response.create(**body), timeout_s)


async def exchange(endpoint: Endpoint, call: Callable[[Any], Any], timeout_s: float) -> tuple[int, Any, bytes]:
    """Return status, headers and body of what `call` requests with a raw client; TimeoutError if it takes too long."""
    openai = _openai()
    try:
        async with asyncio.timeout(timeout_s), _client(openai, endpoint, timeout_s) as client:
            raw = await call(client)
            return raw.http_response.status_code, raw.http_response.headers, raw.http_response.content
    except openai.APIStatusError as error:
        return error.status_code, error.response.headers, error.response.content
    except openai.APITimeoutError:
        raise TimeoutError from None
    except openai.APIConnectionError as error:
        why = str(error.__cause__ or error) or type(error.__cause__).__name__
        raise ModelFault("llm_unreachable", _shown(f"{endpoint.url}: {why}", endpoint)) from None
    except (openai.OpenAIError, ValueError, TypeError) as error:  # an invalid address or key
        raise ModelFault("llm_refused", _shown(f"{endpoint.url}: {error}", endpoint), again=False) from None


def refusal(endpoint: Endpoint, status: int, headers: Mapping[str, str], content: bytes) -> ModelFault:
    """Return the fault that an answer other than 200 means."""
    return _refusal(endpoint, status, headers, _error_text(content, endpoint))


def reply_of(content: bytes) -> Reply:
    """Return the reply of a chat completion; raise ModelFault for anything else."""
    return _reply(content, (), CallOptions())


def _client(openai: Any, endpoint: Endpoint, timeout_s: float) -> Any:
    async def only_ours(request: Any) -> None:
        for name in [name for name in request.headers if name.lower() not in _HEADERS]:
            del request.headers[name]
        if endpoint.key:
            request.headers["Authorization"] = f"Bearer {endpoint.key}"

    transport = openai.DefaultAsyncHttpxClient(
        trust_env=False,
        follow_redirects=False,
        verify=_trusted() if endpoint.url.startswith("https:") else False,
        event_hooks={"request": [only_ours]},
    )
    limits = openai.Timeout(timeout_s, connect=min(_CONNECT_S, timeout_s))
    key = endpoint.key or "none"
    return openai.AsyncOpenAI(base_url=endpoint.url, api_key=key, timeout=limits, max_retries=0, http_client=transport)


@cache
def _openai() -> Any:
    try:
        import openai  # an optional extra
    except ImportError:
        raise MissingPart("The package openai is not installed. Run: pip install 'curtsy[llm]'") from None
    # Its OPENAI_LOG would write prompts to our stderr.
    logging.getLogger("openai").setLevel(logging.CRITICAL)
    return openai


@cache
def _trusted() -> ssl.SSLContext:
    """Trust the system's certificate authorities and the public ones."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


def _reply(content: bytes, messages: Sequence[Message], options: CallOptions) -> Reply:
    try:
        document = json.loads(content)
        choice = document["choices"][0]
        text = _text(choice["message"].get("content"))
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        shown = content[:80].decode("utf-8", "replace")
        raise ModelFault("llm_garbage", f"the answer is not a chat completion: {shown!r}") from None
    usage = document.get("usage")
    asked = sum(tokens_of(message["content"]) for message in messages)
    return Reply(
        text=text,
        finish=str(choice.get("finish_reason") or "stop"),
        prompt_tokens=_count(usage, "prompt_tokens", asked),
        completion_tokens=_count(usage, "completion_tokens", tokens_of(text)),
        options=options,
    )


def _text(content: Any) -> str:
    """Some servers send a list of parts; a model that refuses sends nothing."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _count(usage: Any, name: str, otherwise: int) -> int:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else otherwise


def _error_text(content: bytes, endpoint: Endpoint) -> str:
    text = content[:4000].decode("utf-8", "replace")
    try:
        error = json.loads(content).get("error")
        text = str(error.get("message") or error) + f" {error.get('code') or ''}" if isinstance(error, dict) else text
    except (ValueError, AttributeError, RecursionError):
        pass
    return _shown(" ".join(text.split()), endpoint)


def _shown(text: str, endpoint: Endpoint) -> str:
    """Remove the key: servers repeat it in their errors."""
    return (text.replace(endpoint.key, "***") if endpoint.key else text)[:_DETAIL_CHARS]


def _refusal(endpoint: Endpoint, status: int, headers: Mapping[str, str], message: str) -> ModelFault:
    wait_s = retry_after(headers.get("retry-after"), time.time())
    what = f"{endpoint.url} answers {status}: {message}"
    if status == 429 and "insufficient_quota" not in message:
        return ModelFault("llm_rate_limited", what, retry_after_s=wait_s)
    if status in (408, 504):
        return ModelFault("llm_timeout", what, retry_after_s=wait_s)
    if status in (409, 425) or status >= 500:
        return ModelFault("llm_unreachable", what, retry_after_s=wait_s)
    return ModelFault("llm_refused", what + _advice(status, message), again=False)


def _advice(status: int, message: str) -> str:
    if status in (401, 403):
        return ". Check llm_api_key."
    if any(words in message.casefold() for words in _TOO_LONG):
        return ". Lower llm_context_tokens."
    if status == 404 or 300 <= status < 400:
        return ". Check llm_url (it usually ends in /v1) and llm_model."
    return ""
