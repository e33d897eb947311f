"""The failure every part of the rehearsal raises."""


class RehearsalError(Exception):
    """A failure the user can act on: its message names what went wrong and the fix."""
