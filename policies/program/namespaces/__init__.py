"""Training namespaces: their ladders, and what limits, changes and rejects their pods."""
