"""Settings of every test run."""

from hypothesis import settings

# A limit per example is a limit on the machine: beside a build it fails for no fault of the code.
settings.register_profile("holdfast", deadline=None)
settings.load_profile("holdfast")
