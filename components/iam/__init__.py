"""IAM as values: AWS policy documents and ARNs, and Azure role assignments."""
