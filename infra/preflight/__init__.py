"""The check of a cloud's quotas against a stack, outside of an update: `holdfast preflight STACK`."""
