"""Benchmarks: `python -m bench` measures, prints the bars and writes docs/explanation/benchmarks.md."""
