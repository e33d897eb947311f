"""The error that the simulator and the rehearsal raise."""


class RehearsalError(Exception):
    """An error that the user can fix: its message names the problem and the fix."""
