"""The kubectl plugin `kubectl holdfast`: shows and controls the jobs of a namespace with the user's own permissions."""
