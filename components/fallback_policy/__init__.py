"""The FallbackPolicy: a ladder as a Kubernetes object, and the definition of its kind."""
