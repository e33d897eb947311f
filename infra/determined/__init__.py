"""Turns Determined's `resource_pools` into a stack's `pools`."""
