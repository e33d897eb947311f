"""The loop: what is watched wakes a job, the job is observed, decided upon, and acted for."""
