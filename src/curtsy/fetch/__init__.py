"""Getting bytes from other people's servers: guarded, pinned, bounded."""
