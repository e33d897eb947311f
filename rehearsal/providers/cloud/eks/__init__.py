"""The remote components of pulumi-eks."""
