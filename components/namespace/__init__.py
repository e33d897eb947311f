"""Training namespaces: where jobs run, with their ladder and the way to their checkpoints."""
