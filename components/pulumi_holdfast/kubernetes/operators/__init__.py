"""Operators: the controllers of jobs and devices, installed by Helm charts."""
