"""The kinds of jobs that follow a ladder: how to observe one, and how to write a decision into it. Pure."""
