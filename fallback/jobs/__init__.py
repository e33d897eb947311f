"""The kinds of jobs that follow a ladder: what is seen of one, and how a decision is written into it. Pure."""
