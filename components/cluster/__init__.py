"""Kubernetes clusters: EKS, GKE, AKS and the local one."""
