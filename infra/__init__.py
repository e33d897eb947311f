"""The Pulumi program: parses a stack's configuration and composes components; declares no resource itself."""
