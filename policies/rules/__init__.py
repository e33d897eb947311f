"""One pure rule a module: each returns what is wrong with a stack."""
