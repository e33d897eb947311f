"""The configuration of a stack on AWS, and its validation."""
