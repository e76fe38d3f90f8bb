"""The names of the rules for equivalent URLs. Separate from the settings, whose import takes 0.1 s."""

from __future__ import annotations

from typing import Literal, get_args

#: rules for equivalent URLs, in the order in which rules/folding.py applies them
FoldRule = Literal["escapes", "sessions", "tracking", "order", "index", "empty_query"]
FOLD_RULES: tuple[FoldRule, ...] = get_args(FoldRule)
