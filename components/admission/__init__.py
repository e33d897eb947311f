"""Admission in training namespaces: pods get the tolerations of what they ask for, and nothing else."""
