"""What the preflight checks of the clouds share."""
