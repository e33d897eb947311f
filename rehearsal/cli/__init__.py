"""The commands of `python -m rehearsal`."""
