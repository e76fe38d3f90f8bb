"""The store: the database that is the truth, and the segments that hold the bodies.

Everything is synchronous; functions take the open transaction `tx` first, so that one commit can touch many tables.
"""
