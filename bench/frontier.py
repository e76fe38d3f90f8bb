"""Figures of the frontier alone."""
