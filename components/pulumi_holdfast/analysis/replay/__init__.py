"""What a ladder would have cost on recorded availability: the controller's own decisions, over days in a second."""
