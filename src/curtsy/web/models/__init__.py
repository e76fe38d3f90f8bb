"""What goes in and out over HTTP, one module per group of endpoints."""
