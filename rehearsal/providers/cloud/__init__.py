"""Stand-ins for cloud providers: they keep what they are told in a file, and answer as a cloud would."""

from rehearsal.providers.cloud.provider import CloudProvider

__all__ = ["CloudProvider"]
