"""The pools of a program, and what their nodes have."""
