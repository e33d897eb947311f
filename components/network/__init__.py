"""Networks: where a cluster's nodes are, and how they reach what is outside."""
