"""Stand-ins for the Pulumi engine's provider plugins."""
