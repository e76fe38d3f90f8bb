"""The rules of crawling, as pure functions: URLs, robots.txt, politeness, and what becomes of a fetched URL."""
