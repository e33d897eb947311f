"""The Google Cloud simulator."""
