"""The Azure simulator."""
