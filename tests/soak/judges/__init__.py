"""Judges drawn stacks by what the clouds and the SDKs publish."""
