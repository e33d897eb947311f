"""What the policy pack reads of a program: pools, nodes, namespaces, jobs."""
