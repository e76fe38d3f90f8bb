"""The control plane over HTTP: it validates, writes, enqueues and returns. It never crawls."""
