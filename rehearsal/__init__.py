"""The commands that run a stack on this machine, and the scenarios and checks they run."""
