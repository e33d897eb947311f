"""The drill: interrupts one node of a job and measures what that costs."""
