"""Capacity held for a running job before it is touched: placeholder pods, and the taint that keeps strangers off."""
