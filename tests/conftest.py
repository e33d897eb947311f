"""Settings of every test run."""

import signal

from hypothesis import settings

# A limit per example is a limit on the machine: beside a build it fails for no fault of the code.
settings.register_profile("holdfast", deadline=None)
settings.load_profile("holdfast")

# A run in the background of a script starts with SIGINT ignored, and so would every engine that a test interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)
