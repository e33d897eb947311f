"""The program's connections to its engine: none is shared with those to an engine that is gone."""

# The SDK has no public way to its channels' options.
from pulumi.runtime._grpc_settings import _GRPC_CHANNEL_OPTIONS  # pyright: ignore[reportPrivateUsage]

_OWN_CONNECTIONS = ("grpc.use_local_subchannel_pool", 1)


def connect_anew() -> None:
    """Give each run of a program connections of its own. Once is enough.

    gRPC shares them by address within a process, together with their back-off: a killed engine's channels live on, and
    the next engine that happens on the same free port is refused for up to two minutes without being asked. Seen once
    in some hundred runs, "Connection refused" by an engine that listened.
    """
    if _OWN_CONNECTIONS not in _GRPC_CHANNEL_OPTIONS:
        _GRPC_CHANNEL_OPTIONS.append(_OWN_CONNECTIONS)
