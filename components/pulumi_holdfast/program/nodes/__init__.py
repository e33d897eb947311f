"""What keeps the nodes of a pool from starting and from joining their cluster."""
