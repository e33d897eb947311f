"""A training cluster on EKS."""
