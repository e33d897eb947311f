"""What the rules read of a program: one model for each thing, whichever cloud and operator declares it."""
