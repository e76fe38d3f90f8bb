"""The crawl engine: one URL's way from lease to commit."""
