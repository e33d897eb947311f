"""Checks the AWS account before a training cluster registers its parts: identity, zones, quotas and offers."""
