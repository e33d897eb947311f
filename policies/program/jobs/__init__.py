"""The jobs and other workloads of a program, and their pods."""
