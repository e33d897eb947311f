"""Holdfast: spot-first training clusters on EKS, AKS and GKE, and proof that jobs have a fallback.

The package's parts lie at the root of the repository; the links beside this file give them their importable names.
"""
