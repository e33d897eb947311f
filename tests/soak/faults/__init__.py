"""A fault run: many jobs on a ladder, and everything around them and their controller failing, drawn from a seed."""
