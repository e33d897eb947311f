"""The fallback controller, exactly as it runs in the cluster."""
