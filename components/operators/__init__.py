"""Operators: the controllers behind jobs, each as a chart of its CRDs and a chart of its controller."""
