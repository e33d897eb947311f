"""FallbackPolicy objects: their model and parser."""
