"""Converts Determined's `resource_pools` to a stack's `pools`."""
