"""The AKS cluster: control plane, API server access, role assignments and system nodes."""
