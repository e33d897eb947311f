"""The fallback controller on a cluster: what it may do, where it runs, and where it holds capacity."""
