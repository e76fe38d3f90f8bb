"""The names of the rules by which equivalent URLs are one. Apart from the settings, whose import takes 0.1 s."""

from __future__ import annotations

from typing import Literal, get_args

#: rules by which equivalent URLs are one, in the order in which rules/folding.py applies them
FoldRule = Literal["escapes", "sessions", "tracking", "order", "index", "empty_query"]
FOLD_RULES: tuple[FoldRule, ...] = get_args(FoldRule)
