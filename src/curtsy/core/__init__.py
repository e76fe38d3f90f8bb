"""Values, errors, settings, logging, metrics and clocks: what every other folder may import."""
