"""The page of `kubectl holdfast ui`: the ladder and its jobs, served on the user's own machine to this user only."""
