"""The drill: what one interruption costs a job, measured by taking one of its nodes."""
