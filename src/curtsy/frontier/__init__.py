"""The frontier: the URLs still to fetch, and the time of each host's next request. Rebuilt from the store when lost."""
