"""What spot saves and what it costs: the cost model of a job that falls back, and the numbers that follow from it."""
