"""What only a project knows: its number, its zones, what is sold there. Asked before anything is made."""

from holdfast.infra.gcp.preflight.checks import Project, plugin_problem
from holdfast.infra.gcp.preflight.survey import survey
from holdfast.infra.naming import gke_cluster_name, gke_environment

__all__ = ["Project", "cluster_name_of", "environment_of", "plugin_problem", "survey"]
