"""Talking to a Kubernetes API server."""
