"""Karpenter, which provisions and removes the nodes of pools."""
