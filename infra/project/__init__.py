"""What only a project knows: its number, its zones, what is sold there. Asked before anything is made."""

from infra.project.auth_plugin import plugin_problem
from infra.project.environment import cluster_name_of, environment_of
from infra.project.facts import Project
from infra.project.survey import survey

__all__ = ["Project", "cluster_name_of", "environment_of", "plugin_problem", "survey"]
