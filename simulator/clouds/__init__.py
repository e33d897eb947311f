"""Stand-ins for cloud providers: they keep what they are told in a file, and answer as a cloud would."""

from holdfast.simulator.clouds.provider import CloudProvider

__all__ = ["CloudProvider"]
