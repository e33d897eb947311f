"""Karpenter: what buys nodes for pods and gives them back."""
