"""The crawl engine: takes a URL from its lease to its commit."""
