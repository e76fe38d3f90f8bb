"""The cells of data tables and definition lists, with their labels. Layout tables have none."""

from __future__ import annotations

from selectolax.lexbor import LexborNode

from curtsy.core.text_layout import Cell


class Tables:
    """Gathers cells during the walk; `cells` finds their labels."""

    @property
    def in_data_table(self) -> bool:
        return False

    def table(self, node: LexborNode, entering: bool) -> None: ...

    def row(self, node: LexborNode, entering: bool) -> None: ...

    def cell(self, node: LexborNode, tag: str, entering: bool, position: int) -> None: ...

    def term(self, tag: str, entering: bool, position: int) -> None: ...

    def cells(self, text: str) -> tuple[Cell, ...]:
        return ()
