"""Benchmarks: `python -m bench` measures, prints the bars and writes docs/benchmarks.md."""
