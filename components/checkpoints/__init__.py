"""Checkpoint stores: one module for each kind of storage, with the access of training pods to it."""
