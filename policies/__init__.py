"""The policy pack: rules over the resources of a stack, and a `__main__` that serves them to Pulumi's engine.

This folder is the first entry of the import path when the pack runs, so no module here may have the name of one in the
standard library.
"""
