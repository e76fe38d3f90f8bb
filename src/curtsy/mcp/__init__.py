"""A Model Context Protocol server: an agent crawls politely, and reads and searches what is stored."""
