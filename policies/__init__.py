"""The policy pack: pure rules over a stack's resources, and one `__main__` that serves them to Pulumi.

This folder is the first entry of the import path when the pack runs, so no module here may bear the name of one
in the standard library.
"""
