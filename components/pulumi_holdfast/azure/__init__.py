"""A training cluster on AKS."""
