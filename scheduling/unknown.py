"""The value of what cannot be known yet: a preview's unknown outputs, made explicit."""

from enum import Enum
from typing import Final


class Unknown(Enum):
    """The type of `UNKNOWN`; an enumeration of one, so that `is` narrows it."""

    UNKNOWN = "unknown until the update"


UNKNOWN: Final = Unknown.UNKNOWN
