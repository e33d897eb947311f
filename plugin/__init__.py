"""The kubectl plugin `kubectl holdfast`: the jobs of a namespace for the user whose jobs they are, with the user's own rights."""
