"""The FallbackPolicy: a ladder as a Kubernetes object, and its CustomResourceDefinition."""
