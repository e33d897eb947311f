"""Fake clients of S3, Cloud Storage and Blob Storage, as far as training uses them."""

# ruff: noqa: N803 - the parameters of S3's client have S3's names

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(kw_only=True)
class S3Bucket:
    """An S3 bucket and its client."""

    contents: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def put_object(self, *, Bucket: str, Key: str, Body: bytes) -> None:
        self._check(Bucket, Key)
        self.contents[Key] = Body

    def get_object(self, *, Bucket: str, Key: str) -> Mapping[str, object]:
        self._check(Bucket, Key)
        return {"Body": io.BytesIO(self.contents[Key])}

    def delete_object(self, *, Bucket: str, Key: str) -> None:
        self._check(Bucket, Key)
        del self.contents[Key]

    def get_paginator(self, operation: str) -> S3Bucket:
        assert operation == "list_objects_v2", f"{operation} is not a list operation"
        return self

    def paginate(self, *, Bucket: str, Prefix: str) -> Iterator[Mapping[str, object]]:
        """Two keys per page: a run with many checkpoints must see the last of them."""
        self._check(Bucket, Prefix)
        keys = [key for key in self.contents if key.startswith(Prefix)]
        for start in range(0, len(keys), 2):
            yield {"Contents": [{"Key": key} for key in keys[start : start + 2]]}
        yield {}

    def _check(self, bucket: str, key: str) -> None:
        assert bucket == "ckpt", f"{bucket} is not the bucket of the address"
        assert key.startswith("vision/"), f"{key!r} is outside the namespace's prefix"


@dataclass(kw_only=True)
class CloudStorageBucket:
    """A Cloud Storage bucket and its client."""

    contents: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def bucket(self, name: str) -> CloudStorageBucket:
        assert name == "ckpt", f"{name} is not the bucket of the address"
        return self

    def blob(self, name: str) -> CloudStorageBlob:
        return CloudStorageBlob(bucket=self, name=name)

    def list_blobs(self, *, prefix: str) -> Iterator[CloudStorageBlob]:
        assert prefix.startswith("vision/"), f"{prefix!r} is outside the namespace's folder"
        return (self.blob(name) for name in self.contents if name.startswith(prefix))


@dataclass(kw_only=True)
class CloudStorageBlob:
    """A Cloud Storage object."""

    bucket: CloudStorageBucket
    name: str

    def upload_from_string(self, data: bytes) -> None:
        self.bucket.contents[self.name] = data

    def download_as_bytes(self) -> bytes:
        return self.bucket.contents[self.name]

    def delete(self) -> None:
        del self.bucket.contents[self.name]


@dataclass(kw_only=True)
class BlobContainer:
    """A Blob Storage container of a namespace."""

    contents: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def upload_blob(self, name: str, data: bytes, *, overwrite: bool) -> None:
        assert overwrite, "a repeated step is written again"
        self.contents[name] = data

    def download_blob(self, name: str) -> BlobDownload:
        return BlobDownload(data=self.contents[name])

    def delete_blob(self, name: str) -> None:
        del self.contents[name]

    def list_blob_names(self, *, name_starts_with: str) -> Iterator[str]:
        return (name for name in self.contents if name.startswith(name_starts_with))


@dataclass(frozen=True, kw_only=True)
class BlobDownload:
    """The content of a blob that is read."""

    data: bytes

    def readall(self) -> bytes:
        return self.data
