"""The Pulumi program: reads the configuration and composes components; makes no resource itself."""
