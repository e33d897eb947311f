"""Holdfast: spot-first training clusters on EKS, AKS and GKE, and proof that jobs have a fallback."""
