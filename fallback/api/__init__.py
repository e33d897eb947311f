"""One API server: requests, watches kept up, who leads, and Events."""
