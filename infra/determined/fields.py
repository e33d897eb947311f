"""What becomes of each field of Determined's pools: taken over, left behind with a note, or refused. Pure."""

from collections.abc import Mapping
from typing import Final

#: Fields of a pool and of its provider that a stack's pool has too.
TAKEN: Final = frozenset({"pool_name", "provider"})
TAKEN_OF_PROVIDER: Final = frozenset(
    {
        "type",
        "instance_type",
        "instance_slots",
        "max_instances",
        "min_instances",
        "root_volume_size",
        "spot",
    }
)

#: Fields that configure Determined's own agents and scheduler: a cluster has its own of each, and pods lose nothing.
LEFT: Final = frozenset(
    {
        "agent_reattach_enabled",
        "agent_reconnect_wait",
        "description",
        "max_aux_containers_per_agent",
        "max_cpu_containers_per_agent",
        "scheduler",
        "task_container_defaults",
    }
)
LEFT_OF_PROVIDER: Final = frozenset(
    {
        "agent_docker_image",
        "agent_docker_network",
        "agent_docker_runtime",
        "agent_fluent_image",
        "agent_reconnect_attempts",
        "agent_reconnect_backoff",
        "cpu_slots_allowed",
        "iam_instance_profile_arn",
        "instance_name",
        "launch_error_retries",
        "launch_error_timeout",
        "log_group",
        "log_stream",
        "master_cert_name",
        "master_url",
        "max_agent_starting_period",
        "max_idle_agent_period",
        "network_interface",
        "region",
        "ssh_key_name",
        "tag_key",
        "tag_value",
    }
)

#: Fields without an equivalent: why, and what to do.
REFUSED: Final[Mapping[str, tuple[str, str]]] = {
    "kubernetes_namespace": (
        "nothing here, since it belongs to a cluster that exists already",
        "Remove the pool: this command makes pools of machines, and training namespaces are written by hand.",
    ),
}
REFUSED_OF_PROVIDER: Final[Mapping[str, tuple[str, str]]] = {
    "spot_max_price": (
        "nothing here, since Karpenter has no field that holds a price cap",
        "Remove it: spot costs at most the on-demand price, and procurementTimeout ends the wait for it.",
    ),
    "startup_script": (
        "nothing here, since nodes run no script of yours",
        "Remove it, and do what it does in a DaemonSet or in the job's image.",
    ),
    "container_startup_script": (
        "nothing here, since there is no agent's container",
        "Remove it, and do what it does in the job's image.",
    ),
    "image_id": (
        "nothing here, since the image of nodes is pinned for the whole stack",
        "Remove it, and put what the image holds into the job's image.",
    ),
    "custom_tags": (
        "nothing here, since tags are those of the whole stack",
        "Remove them, and write them as aws:defaultTags in the stack file.",
    ),
}
