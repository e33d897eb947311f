"""The commands of `python -m holdfast.rehearsal`."""
