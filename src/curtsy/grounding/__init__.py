"""What counts as evidence for a value: schemas, the checks that a value is in its source, and scoring."""
