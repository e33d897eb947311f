"""The GKE cluster: its control plane, who reaches it, what its nodes may do, and the nodes of its operators."""
