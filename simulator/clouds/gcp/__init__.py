"""What Google Cloud does beyond keeping what it is told."""
