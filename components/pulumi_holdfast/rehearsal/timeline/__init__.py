"""Watches jobs and their pods from outside, and keeps what became of each: nothing of it comes from the controller."""
