"""Finding the values of a record on pages: structured data, selectors, language models."""
