"""The AWS simulator."""
