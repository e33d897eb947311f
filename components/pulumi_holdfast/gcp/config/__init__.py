"""The configuration of a stack on Google Cloud, and its validation."""
