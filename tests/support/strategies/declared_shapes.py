"""Draws shapes with every field that a stack file may set."""

from hypothesis import strategies as st

from pulumi_holdfast.ladder.labels import ARCH, GPU_RESOURCE, POOL
from pulumi_holdfast.ladder.quantities import MOST_CPU_MILLIS, MOST_MEMORY_MIB
from pulumi_holdfast.ladder.reachability.shape import (
    EPHEMERAL_STORAGE,
    MOST_GPUS,
    WIDEST_GANG,
    Placement,
    Resources,
    Shape,
)
from pulumi_holdfast.ladder.taints import Toleration

TOLERATIONS = (
    Toleration(),
    Toleration(key="team"),
    Toleration(key="team", value="vision", effect="NoSchedule"),
    Toleration(key="team", value="", effect="NoExecute"),
)
#: Neither a taint's key nor any key: the API server rejects it.
NO_TOLERATION = Toleration(value="vision")


def declared_shapes(*, valid: bool) -> st.SearchStrategy[Shape]:
    """Draw shapes that the configuration accepts, or, unless they are to be valid, some that it does not."""
    devices = {
        "rdma/ib": st.integers(1, 8),
        EPHEMERAL_STORAGE: st.integers(1, MOST_MEMORY_MIB),
        "hugepages-2Mi": st.integers(2, 4096),
    }
    selected = {ARCH: st.just("amd64"), "team": st.sampled_from(("vision", ""))}
    tolerations = TOLERATIONS
    if not valid:
        devices[GPU_RESOURCE] = st.just(1)
        selected[POOL] = st.just("a100")
        tolerations = (*TOLERATIONS, NO_TOLERATION)
    return st.builds(
        Shape,
        name=st.sampled_from(("a", "b", "c-1")),
        pods=st.integers(1, WIDEST_GANG),
        requests=st.builds(
            Resources,
            cpu_millis=st.integers(1, MOST_CPU_MILLIS),
            memory_mib=st.integers(1, MOST_MEMORY_MIB),
            gpus=st.sampled_from((1, MOST_GPUS) if valid else (0, 1, MOST_GPUS)),
            efa=st.sampled_from((0, 4)),
            devices=st.fixed_dictionaries({}, optional=devices),
        ),
        accelerator=st.sampled_from((None, "a100")),
        selector=st.fixed_dictionaries({}, optional=selected),
        tolerations=st.lists(st.sampled_from(tolerations), max_size=2).map(tuple),
        architectures=st.sampled_from(
            ((), ("amd64",), ("arm64",), ("amd64", "arm64"), *(() if valid else (("arm64", "arm64"),)))
        ),
        same_placement=st.sampled_from((None, *Placement)),
    )
