"""The backends of one process: store, segments and frontier, its epochs, and the servers that it starts itself."""
