"""Checks the Azure subscription before a training cluster registers its parts: its identity, its tenant, who deploys."""
