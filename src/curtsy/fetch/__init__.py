"""Sending requests to web servers: with the address guard, pinned addresses and limits."""
