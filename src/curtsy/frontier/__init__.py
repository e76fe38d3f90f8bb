"""The frontier: the URLs still to fetch, and when each host may next be asked. Lives in Valkey, rebuilt from the store."""
