"""Measures what the policy pack adds to a preview."""
