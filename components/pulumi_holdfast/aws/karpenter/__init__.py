"""Karpenter on EKS: IAM roles and policies, the interruption queue, and the controller."""
