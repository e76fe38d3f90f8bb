"""Learned selectors."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from curtsy.web.models.fields import Name, Time, Word, from_ms
from curtsy.web.paging import Paged


class SelectorInfo(BaseModel):
    """A selector that was learned for one field on the pages of one template."""

    model_config = ConfigDict(serialize_by_alias=True)

    id: str
    field: str = Field(description="JSON pointer of the field, with `*` for the items of a list.")
    schema_name: str = Field(serialization_alias="schema")
    schema_hash: str
    host: str
    url_shape: str = Field(description="What the URLs of the template have in common: `/shop/*`.")
    template: int = Field(description="Selectors with the same number belong to the same kind of page.")
    state: Literal["active", "retired"]
    why: str = Field(
        description="Why it was retired: `contradicted`, `missed`, `corrected`, `layout`, `forgotten`; or empty."
    )
    selector: str = Field(description="The place for people: elements, label, position.")
    css: str
    label: str | None = Field(description="The label before the value, without case and figures; null: any.")
    position: int | None = Field(description="Which of `of` elements, from 1; null: there is only one.")
    of: int | None
    before: str = Field(description="Constant text of the element before the value.")
    after: str = Field(description="Constant text of the element behind the value.")
    examples: int = Field(description="Pages with a verified value that it was learned from.")
    tested: int = Field(description="Stored pages on which it was tested.")
    found: int = Field(description="Tested pages on which it found a value.")
    used: int = Field(description="Pages on which its value counted.")
    pages: int = Field(description="Pages of the template.")
    pages_read: int = Field(description="Pages of the template that the model or a person has read.")
    learned: Time
    ended: Time | None


class SelectorDetails(SelectorInfo):
    """A learned selector with pages that taught it."""

    taught_by: list[str] = Field(description="URLs, newest first.")


class SelectorsQuery(Paged):
    host: Name | None = None
    schema_name: Word | None = Field(None, alias="schema", description="Only selectors of this schema.")
    state: Literal["active", "retired", "all"] = "active"


def selector_fields(found: dict[str, Any]) -> dict[str, Any]:
    return found | {
        "schema_name": found["schema"],
        "learned": from_ms(found["learned_ms"]),
        "ended": from_ms(found["ended_ms"]),
    }
