"""The rules of crawling, as pure functions: URLs, robots.txt, politeness, and the decision about a fetched URL."""
