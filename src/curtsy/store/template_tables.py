"""Tables of learned selectors: templates, their pages, and the selectors of their fields."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Identity,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)

from curtsy.store.tables import Serial, may, metadata, need

templates = Table(
    "templates",
    metadata,
    Column("n", Serial, Identity(), primary_key=True),
    need("schema_hash", Text),
    need("schema", Text),
    need("host", Text),
    need("shape", Text),
    need("skeleton_key", Text),  # digest of the skeleton
    need("skeleton", Text),  # JSON: digests of chains
    need("known", Text, "'{}'"),  # JSON: digest of a place -> [absent fields, found fields]
    need("absent", Text, "'{}'"),  # JSON: field -> pages on which the model did not find it
    need("pages", BigInteger, "0"),
    need("asked", BigInteger, "0"),  # pages that the model, or a person, has read
    need("next_try", BigInteger, "3"),  # learning is tried again when `asked` is that large
    need("revision", BigInteger, "0"),  # changes with every retirement, correction and newly learned selector
    need("behind", Integer, "0"),  # pages in a row of the same shape that belong to a newer template
    need("created_ms", BigInteger),
    need("seen_ms", BigInteger),
    need("checked", BigInteger, "0"),  # value of `pages` at the last check by the model
    UniqueConstraint("schema_hash", "host", "shape", "skeleton_key", name="templates_key"),
)

template_pages = Table(
    "template_pages",
    metadata,
    need("crawl", BigInteger),
    need("page", Text),  # fingerprint as hexadecimal digits
    need("schema_hash", Text),
    need("template", BigInteger),
    need("teaches", Boolean, "false"),  # the model, or a person, has read it
    need("absent", Text, "'[]'"),  # JSON: fields that it does not state
    need("at_ms", BigInteger),
    PrimaryKeyConstraint("crawl", "page", "schema_hash"),
    Index("template_pages_template", "template", "at_ms"),
    sqlite_with_rowid=False,
)

selectors = Table(
    "selectors",
    metadata,
    Column("n", Serial, Identity(), primary_key=True),
    need("template", BigInteger),
    need("leaf", Text),
    need("place", Text),  # JSON
    need("state", Text, "'active'"),  # active | retired
    need("examples", Integer),  # pages with a verified value that it finds
    need("tested", Integer),  # stored pages on which it was tried
    need("found", Integer),  # those on which it found a value
    need("used", BigInteger, "0"),  # pages on which its value counted
    need("missed", Integer, "0"),  # pages in a row on which only the model found a value
    need("learned_ms", BigInteger),
    may("ended_ms", BigInteger),
    need("why", Text, "''"),  # contradicted | missed | corrected | layout | forgotten
    Index("selectors_template", "template", "n"),
)
