"""What Azure does beyond keeping what it is told."""
