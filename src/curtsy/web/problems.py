"""Errors over HTTP: RFC 9457 problem documents. Raise a `Problem`; the factory writes the document."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from curtsy.web.models.fields import IN_WORDS

MEDIA_TYPE = "application/problem+json"
#: mistakes listed in one document
_MOST_MISTAKES = 20
#: beyond this number no mistake is listed: the list would take more memory than the body
_TOO_MANY = 1_000
_LONGEST_NAME = 200


class Mistake(BaseModel):
    """One error in a request."""

    model_config = ConfigDict(title="Mistake")

    where: str = Field(
        description="Path of the field, such as `body.seeds.3` or `query.limit`; in an NDJSON body `line 7`."
    )
    message: str


class ProblemDocument(BaseModel):
    """RFC 9457: what went wrong, and what the caller can do."""

    model_config = ConfigDict(title="Problem")

    type: str = Field(description="`urn:curtsy:problem:<name>`: stable, for programs.")
    title: str
    status: int
    detail: str = Field(description="For people: what happened, and what to do.")
    request_id: str
    errors: list[Mistake] | None = Field(None, description="The first 20 errors in the request.")


class Problem(Exception):
    """An error response. `name` is stable (`no-such-crawl`); `detail` tells a person what to do."""

    def __init__(
        self,
        status: int,
        name: str,
        detail: str,
        *,
        errors: list[Mistake] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.name, self.detail = status, name, detail
        self.errors = errors
        self.headers = headers or {}

    def document(self, request_id: str) -> ProblemDocument:
        return ProblemDocument(
            type=f"urn:curtsy:problem:{self.name}",
            title=self.name.replace("-", " ").capitalize(),
            status=self.status,
            detail=self.detail,
            request_id=request_id,
            errors=None if self.errors is None else self.errors[:_MOST_MISTAKES],
        )


def no_such_record() -> Problem:
    return Problem(404, "no-such-record", "There is no record with this id. GET /v1/crawls/{id}/records lists them.")


def of_status(status: int) -> Problem:
    """The generic problem of an HTTP status."""
    known = HTTPStatus(status)
    return Problem(status, known.phrase.lower().replace(" ", "-").replace("'", ""), f"{known.description}.")


def of_validation(where: str, error: ValidationError) -> Problem:
    """A pydantic error as a problem. It does not repeat values, which may be secrets."""
    if error.error_count() > _TOO_MANY:
        return Problem(422, "invalid-request", f"The {where} has more than {_TOO_MANY} errors. See /docs.")
    mistakes = [
        Mistake(where=".".join([where, *map(str, e["loc"])])[:_LONGEST_NAME], message=_message(e))
        for e in error.errors(include_url=False, include_input=False)
    ]
    details = "; ".join(f"{mistake.where}: {mistake.message}" for mistake in mistakes[:3])
    return Problem(
        422,
        "invalid-request",
        f"The {where} is invalid: {details}. See /docs.",
        errors=mistakes,
    )


def _message(error: Any) -> str:
    expected = IN_WORDS.get(error.get("ctx", {}).get("pattern", ""))
    if expected is not None:
        return f"this should be {expected}"
    return "there is no such field" if error["type"] == "extra_forbidden" else str(error["msg"])
