"""The AKS cluster: its control plane, who reaches it, who may do what in it, and the nodes of its operators."""
