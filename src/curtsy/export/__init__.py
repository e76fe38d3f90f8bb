"""Pages and records as files: formats, increments, and where they are written."""
