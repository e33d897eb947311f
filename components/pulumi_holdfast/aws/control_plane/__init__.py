"""The EKS cluster: control plane, access, add-ons and system nodes."""
