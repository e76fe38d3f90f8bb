"""Errors over HTTP: RFC 9457 problem documents. Raise a Problem; the factory writes the document."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from curtsy.web.models.asking import IN_WORDS

MEDIA_TYPE = "application/problem+json"
#: mistakes that are named in one document
_MOST_MISTAKES = 20
#: of more than this none is named: to list them would take more memory than the body
_TOO_MANY = 1_000
_LONGEST_NAME = 200


class Mistake(BaseModel):
    """One thing that is wrong with a request."""

    model_config = ConfigDict(title="Mistake")

    where: str = Field(
        description="The field, as a path: `body.seeds.3`, `query.limit`; a line of an NDJSON body: `line 7`."
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
    errors: list[Mistake] | None = Field(None, description="What is wrong with the request, the first 20.")


class Problem(Exception):
    """An answer that is no success. `name` is stable (`no-such-crawl`), `detail` tells a person what to do."""

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


def of_status(status: int, detail: str | None = None) -> Problem:
    """A problem with no more to say than its HTTP status."""
    known = HTTPStatus(status)
    return Problem(status, known.phrase.lower().replace(" ", "-").replace("'", ""), detail or f"{known.description}.")


def of_validation(where: str, error: ValidationError) -> Problem:
    """What pydantic refused; values are not repeated, they may be secrets."""
    if error.error_count() > _TOO_MANY:
        return Problem(
            422, "invalid-request", f"The {where} has more than {_TOO_MANY} mistakes. /docs shows what fits."
        )
    mistakes = [
        Mistake(where=".".join([where, *map(str, e["loc"])])[:_LONGEST_NAME], message=_fault(e))
        for e in error.errors(include_url=False, include_input=False)
    ]
    told = "; ".join(f"{mistake.where}: {mistake.message}" for mistake in mistakes[:3])
    return Problem(
        422,
        "invalid-request",
        f"The {where} does not fit: {told}. /docs shows what fits.",
        errors=mistakes,
    )


def _fault(error: Any) -> str:
    wanted = IN_WORDS.get(error.get("ctx", {}).get("pattern", ""))
    return said(error["type"], error["msg"]) if wanted is None else f"this should be {wanted}"


def said(kind: str, message: str) -> str:
    return "there is no such field" if kind == "extra_forbidden" else message


def schema() -> dict[str, Any]:
    return ProblemDocument.model_json_schema(mode="serialization", ref_template="#/components/schemas/{model}")
