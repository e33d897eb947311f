"""Checks the Google Cloud project before a training cluster registers its parts: what it offers, and what an earlier update made."""
