"""What a model is shown for each missing value of the judge's sets: how much, and whether the true line is among it.

python tests/golden/asking.py
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from quoting import FOLDER, _states

from curtsy.extract import record_claims
from curtsy.extract.chunks import choose, tokens_of
from curtsy.records import truth

BUDGET_TOKENS = 6000


def measure(path: Path) -> Counter[str]:
    """Count the values whose line is in the main content, those whose line is shown, and the tokens of both."""
    told: Counter[str] = Counter()
    for case in truth.load(path):
        pages = [
            record_claims.sources_of(str(at), url, html.encode(), "text/html; charset=utf-8")
            for at, (url, html) in enumerate(case.pages)
        ]
        texts = [page.shown for page in pages]
        for name, values in case.truth.items():
            leaf = case.schema.leaf_for(name.replace("*", "0"))
            shown = choose(texts, [leaf], BUDGET_TOKENS, related=[True] * len(texts))
            told["tokens of the page"] += sum(map(tokens_of, texts))
            told["tokens shown"] += sum(one.tokens for one in shown)
            told["asked"] += 1
            for value in values:
                lines = [line for text in texts for line in text.split("\n") if _states(line, value, leaf)]
                if lines:
                    told["stated"] += 1
                    if any(_states(one.text, value, leaf) for one in shown):
                        told["shown"] += 1
                    else:
                        told[f"missed {leaf.path} {value!r} {lines[0][:80]!r}"] += 1
    return told


if __name__ == "__main__":
    for name in ("articles", "events", "jobs", "organizations", "products"):
        told = measure(FOLDER / f"{name}.toml")
        print(name, {key: told[key] for key in ("asked", "stated", "shown", "tokens of the page", "tokens shown")})
        print(*(f"  {key}" for key in told if key.startswith("missed")), sep="\n")
