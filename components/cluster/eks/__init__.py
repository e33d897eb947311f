"""The EKS cluster: its control plane, who gets in, its add-ons and the nodes of its operators."""
