"""One rule a module: its predicate over a stack, and its metadata. `policies.pack` lists them."""
