"""The GKE cluster: control plane, access, node identity and system nodes."""
