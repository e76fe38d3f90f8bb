"""Reading one page: its encoding, links, text, Markdown and structured data. Pure; bad content never raises."""

from curtsy.content.compiled import choose

choose()
