"""The ladder as a pure state machine: what a job's next step is, given what is kept and what is seen of it."""
