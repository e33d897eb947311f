"""The fallback controller on a cluster: its Deployment, permissions and reservation namespace."""
