"""Which registry an image is pulled from. Pure."""

from __future__ import annotations


def image(mirror: str | None, repository: str) -> str:
    """An image's repository, without a tag, in upstream's registry or in a mirror of it.

    A mirror (`registry.example.com/holdfast`) takes the place of the registry's host: what lies at
    `quay.io/kuberay/operator` upstream lies at `registry.example.com/holdfast/kuberay/operator` there.
    """
    if mirror is None:
        return repository
    _, _, path = repository.partition("/")
    return f"{mirror.rstrip('/')}/{path}"
