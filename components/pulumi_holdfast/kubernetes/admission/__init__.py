"""Admission policies of training namespaces: for pods (tolerations) and for jobs (fallback ladders)."""
