"""What AWS does beyond keeping what it is told."""
