"""Settings of every test run."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.support.scheduling import FolderScheduling, longest_first

if TYPE_CHECKING:
    from xdist.remote import Producer

# A limit per example is a limit on the machine: beside a build it fails for no fault of the code.
settings.register_profile("holdfast", deadline=None)
settings.load_profile("holdfast")

# A run in the background of a script starts with SIGINT ignored, and so would every engine that a test interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest scopes first: the run ends when the last of them does."""
    longest_first(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FolderScheduling:
    """Distribute by folder or file."""
    config.option.loadscopereorder = False  # the collection is in order
    return FolderScheduling(config, log)
