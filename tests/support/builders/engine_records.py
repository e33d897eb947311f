"""Builders of the engine's state, locks, events and results."""


def urn(name: str, type_token: str = "aws:ec2/vpc:Vpc") -> str:
    return f"urn:pulumi:dev::holdfast::{type_token}::{name}"
