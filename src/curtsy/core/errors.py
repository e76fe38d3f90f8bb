"""The error tree, grouped by what the caller can do next.

    CurtsyError
      UsageError            the person must change what they typed or configured
        SettingsError         a setting is wrong, or the chain of time limits does not hold
        UnknownCrawl          no crawl has that id
        UnknownSchedule       no schedule has that id or name
        UnknownRecord         no record has that number
        UnknownSelector       no learned selector has that number
        NameTaken             another schedule has that name
        RefusedSeeds          some seeds cannot be crawled: they are named
        WrongState            the crawl or record is in a state in which this cannot be done
        KeyReused             the Idempotency-Key belongs to another body
      UploadHeld            another request is sending the same upload: wait for it
      Unavailable           a backend is unavailable or missing: wait and try again, or fix it as the message says
        FrontierUnavailable   Valkey/Redis does not answer
          FrontierRefused       it answers and refuses (no memory left, no rights): a person must act
        StoreUnavailable      the database does not answer
          StoreUnwritable       it answers and refuses (read-only, disk full, no rights): a person must act
        SegmentsUnavailable   the segment store cannot be written or read (disk full, object store down)
        MissingPart           a program or package is not installed
      EpochLost             the frontier lost its memory or another epoch is current: rebuild, then continue
      SchemaMismatch        the database was made by another version: migrate or upgrade
      Damaged               stored data does not read back as written

A failed fetch is not an error: it is an Outcome, and decide() returns the next state of its URL.
"""

from __future__ import annotations


class CurtsyError(Exception):
    """Base of all errors; the message is written for the person who must act on it."""


class UsageError(CurtsyError):
    """The person must change what they typed or configured."""


class SettingsError(UsageError):
    """A setting is wrong, or the chain of time limits does not hold."""


class UnknownCrawl(UsageError):
    """No crawl has that id."""


class UnknownSchedule(UsageError):
    """No schedule has that id or name."""


class UnknownRecord(UsageError):
    """No record has that number."""


class UnknownSelector(UsageError):
    """No learned selector has that number."""


class NameTaken(UsageError):
    """Another schedule has that name."""


class RefusedSeeds(UsageError):
    """Some seeds cannot be crawled. Nothing was started, or the started crawl is canceled or can be resumed."""

    def __init__(self, refused: list[tuple[str, str]], said: str | None = None) -> None:
        #: (where, why) of the first ones
        self.refused = refused
        where, why = refused[0] if refused else ("unknown place", "refused")
        more = f" {len(refused)} or more seeds are invalid." if len(refused) > 1 else ""
        super().__init__(said or f"Invalid seed ({where}): {why}.{more}")


class WrongState(UsageError):
    """The crawl is in a state in which this cannot be done."""


class KeyReused(UsageError):
    """The Idempotency-Key belongs to another body."""


class UploadHeld(CurtsyError):
    """Another request is sending the same upload."""


class Unavailable(CurtsyError):
    """A backend is unavailable or missing; the message says how to fix it."""


class FrontierUnavailable(Unavailable):
    """Valkey/Redis does not answer."""


class StoreUnavailable(Unavailable):
    """The database does not answer."""


class SegmentsUnavailable(Unavailable):
    """The segment store cannot be written or read."""


class Unwritable(Unavailable):
    """Full or read-only: a retry does not help; a person must act."""


class FrontierRefused(FrontierUnavailable, Unwritable):
    """Valkey/Redis answers and refuses: no memory left, no rights."""


class StoreUnwritable(StoreUnavailable, Unwritable):
    """The database accepts no writes."""


class SegmentsUnwritable(SegmentsUnavailable, Unwritable):
    """The folder of segments accepts no writes."""


class MissingPart(Unavailable):
    """A program or package is not installed."""


class NoBrowser(Unavailable):
    """Pages wait for a browser, and none starts."""


class EpochLost(CurtsyError):
    """The frontier lost its memory, or another epoch is current."""


class SchemaMismatch(CurtsyError):
    """The database was made by another version of the program."""


class Damaged(CurtsyError):
    """Stored data does not read back as written."""
