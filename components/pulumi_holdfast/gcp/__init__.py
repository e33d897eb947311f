"""A training cluster on GKE."""
