"""The timeouts that tests on a real cluster shorten have the documented values."""

from datetime import timedelta

from tests.support.clusters.impatient_controller import SHORT


def test_shortened_timeouts_have_their_documented_values() -> None:
    values = {name: getattr(module, name) for module, names in SHORT.items() for name in names}
    assert values == {
        "PODS_CREATED_WITHIN": timedelta(minutes=1),
        "HEAD_TIMEOUT": timedelta(minutes=2),
        "MISSING_POOL_GRACE": timedelta(minutes=1),
        "UNREACHABLE_AFTER": timedelta(seconds=45),
    }
    assert all(short < values[name] for names in SHORT.values() for name, short in names.items())
