"""FallbackPolicy objects as the controller reads them."""
