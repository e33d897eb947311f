"""Settings of every test run."""

from __future__ import annotations

import gc
import os
import signal
from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, settings

from tests.support.scheduling import FolderScheduling, longest_first
from tests.support.soak import VARIABLE

if TYPE_CHECKING:
    from xdist.remote import Producer

# No deadline per example: beside a build it would fail through no fault of the code. `make test` draws the same few
# examples on every run, so that no change is blamed for the draw of another; `make soak` draws many others.
settings.register_profile("holdfast", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("soak", deadline=None, max_examples=1000)
# Of a mutation only the failure matters, not the smallest example of it.
settings.register_profile(
    "mutants", settings.get_profile("holdfast"), phases=[Phase.explicit, Phase.generate]
)
settings.load_profile("soak" if os.environ.get(VARIABLE) else "holdfast")

# The SDKs and the collected tests are a million objects that live until the end: a garbage collection that walks them
# frees nothing. None runs before the first test, and few run then.
gc.disable()
gc.set_threshold(400_000, 20, 50)

# The API servers that tests start spend a third of their CPU time on garbage, most of it while kinds are defined: with
# twice the memory, a tenth.
os.environ.setdefault("GOGC", "300")

# A run in the background of a script starts with SIGINT ignored, and so would every engine that a test interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest scopes first: the run ends when the last of them does."""
    longest_first(items)


def pytest_collection_finish() -> None:
    """Leave out of later garbage collections what is imported by now."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FolderScheduling:
    """Distribute by folder or file."""
    config.option.loadscopereorder = False  # the collection is in order
    return FolderScheduling(config, log)
