"""A real Kubernetes control plane on this machine, with simulated nodes."""

from pulumi_holdfast.rehearsal.control_plane.configuration import Layout
from pulumi_holdfast.rehearsal.control_plane.control_plane import ControlPlane

__all__ = ["ControlPlane", "Layout"]
