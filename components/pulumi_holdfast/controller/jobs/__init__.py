"""The kinds of jobs that follow a ladder: what is observed of one and recorded in it, and how a decision is written into it."""
