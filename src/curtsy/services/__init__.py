"""What one process works with: the store, the segments and the frontier, its epochs, and servers it starts itself."""
