"""Networks: a VPC or virtual network for each cloud, with egress for private nodes."""
