"""How long to wait before a process that ended is started again. Pure."""

LONGEST_DELAY_SECONDS = 30.0
# A process that held out so long did not fail for the reason the one before it failed for.
STEADY_SECONDS = 60.0


def failures_after(failures: int, *, ran_seconds: float) -> int:
    """How many failures in a row there are, counting the one after `ran_seconds`."""
    return 1 if ran_seconds >= STEADY_SECONDS else failures + 1


def delay_seconds(failures: int) -> float:
    """The wait after so many failures in a row: 1, 2, 4 … seconds, 30 at most."""
    return min(2.0 ** min(failures - 1, 10), LONGEST_DELAY_SECONDS)
