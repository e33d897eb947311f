"""The control loop: watch events enqueue jobs; a job is observed, decided upon, and its actions are carried out."""
