"""Simulated cloud providers: they store resources in a file and behave like the cloud's API."""

from pulumi_holdfast.rehearsal.clouds.provider import CloudProvider

__all__ = ["CloudProvider"]
