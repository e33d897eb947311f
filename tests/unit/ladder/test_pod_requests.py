"""The effective requests of a pod, with as many init containers as the API server accepts."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.pod_requests import effective_requests

AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory", "e.x/0"]), st.integers(0, 9), max_size=3)
INIT_CONTAINERS = st.lists(st.tuples(AMOUNTS, st.booleans()), max_size=6)


def container(amounts: dict[str, int], *, is_sidecar: bool = False) -> Json:
    requests: Json = {name: str(amount) for name, amount in amounts.items()}
    return {"resources": {"requests": requests}, **({"restartPolicy": "Always"} if is_sidecar else {})}


@given(AMOUNTS, INIT_CONTAINERS)
def test_an_init_container_runs_with_the_sidecars_before_it(
    main: dict[str, int], init: list[tuple[dict[str, int], bool]]
) -> None:
    moments = [
        [amounts, *(each for each, is_sidecar in init[:number] if is_sidecar)]
        for number, (amounts, _) in enumerate(init)
    ]
    moments.append([main, *(amounts for amounts, is_sidecar in init if is_sidecar)])
    names = {name for moment in moments for amounts in moment for name in amounts}
    peaks = {name: max(sum(each.get(name, 0) for each in moment) for moment in moments) for name in names}
    found = effective_requests(
        {
            "containers": [container(main)],
            "initContainers": [container(amounts, is_sidecar=is_sidecar) for amounts, is_sidecar in init],
        }
    )
    assert found == {name: Fraction(peak) for name, peak in peaks.items() if peak}


def test_thousands_of_sidecars_with_resources_of_their_own_are_summed_in_one_walk() -> None:
    sidecars = [container({f"e.x/{number}": 1}, is_sidecar=True) for number in range(14_000)]
    assert len(effective_requests({"initContainers": [*sidecars]})) == 14_000
