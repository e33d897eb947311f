"""The ladder as a pure state machine: a job's next step, given its recorded state and what is observed of it."""
