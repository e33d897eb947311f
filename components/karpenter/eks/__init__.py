"""Karpenter on EKS: its identity, the role of its nodes, its interruption queue, and the controller."""
