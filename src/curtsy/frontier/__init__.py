"""The frontier: the URLs still to fetch, and when each host may next be asked. Rebuilt from the store when lost."""
