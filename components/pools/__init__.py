"""Pools: nodes of one capacity type, for Karpenter, GKE and AKS."""
