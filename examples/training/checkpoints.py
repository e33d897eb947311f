"""Stores a run's checkpoints under CHECKPOINT_URI: in a directory, S3, Cloud Storage or Blob Storage.

A checkpoint is written atomically: if the program is killed while it writes one, the previous checkpoints stay valid.
The pod's service account has the permission to read and write.
"""

import json
import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

KEPT = 3


class Checkpoints:
    """The checkpoints of one run, under its own part of the namespace's prefix."""

    def __init__(self, store):
        self._store = store

    def latest(self):
        """The newest checkpoint that can be read; None if there is none."""
        # List, because S3 answers a pod's request for a missing object with 403 instead of 404.
        for name in sorted(self._store.names(), reverse=True):
            try:
                return json.loads(self._store.read(name))
            except ValueError as error:
                print(f"{name} is not a valid checkpoint ({error}): using the previous one", flush=True)
        return None

    def save(self, state):
        """Save a state and delete all but the newest few: no lifecycle rule deletes current objects."""
        self._store.write(f"step-{state['step']:09d}.json", json.dumps(state).encode())
        for old in sorted(self._store.names())[:-KEPT]:
            self._store.delete(old)


class Directory:
    """A directory: a volume that all pods of the job mount, or one on this machine."""

    def __init__(self, path):
        self._path = path

    def names(self):
        """The names of all checkpoints."""
        return [path.name for path in self._path.glob("step-*.json")]

    def read(self, name):
        """What is in a checkpoint."""
        return (self._path / name).read_bytes()

    def write(self, name, data):
        """Write a checkpoint to a temporary file, sync it to disk, and rename it."""
        self._path.mkdir(parents=True, exist_ok=True)
        part = self._path / f".{name}.{os.getpid()}"
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self._path / name)
        for left in self._path.glob(".step-*.json.*"):
            left.unlink(missing_ok=True)

    def delete(self, name):
        """Remove a checkpoint."""
        (self._path / name).unlink(missing_ok=True)


class S3:
    """A prefix of an S3 bucket."""

    def __init__(self, client, bucket, prefix):
        self._client = client
        self._bucket = bucket
        self._prefix = prefix

    def names(self):
        """The names of all checkpoints."""
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=self._prefix
        )
        return [
            found["Key"].removeprefix(self._prefix) for page in pages for found in page.get("Contents", [])
        ]

    def read(self, name):
        """What is in a checkpoint."""
        return self._client.get_object(Bucket=self._bucket, Key=self._prefix + name)["Body"].read()

    def write(self, name, data):
        """Write a checkpoint."""
        self._client.put_object(Bucket=self._bucket, Key=self._prefix + name, Body=data)

    def delete(self, name):
        """Remove a checkpoint."""
        self._client.delete_object(Bucket=self._bucket, Key=self._prefix + name)


class CloudStorage:
    """A folder of a Cloud Storage bucket."""

    def __init__(self, client, bucket, prefix):
        # Not `get_bucket`, which reads the bucket itself: the pod only has access to its namespace's folder.
        self._bucket = client.bucket(bucket)
        self._prefix = prefix

    def names(self):
        """The names of all checkpoints."""
        # With the prefix, because the pod may not list objects outside of it.
        return [blob.name.removeprefix(self._prefix) for blob in self._bucket.list_blobs(prefix=self._prefix)]

    def read(self, name):
        """What is in a checkpoint."""
        return self._bucket.blob(self._prefix + name).download_as_bytes()

    def write(self, name, data):
        """Write a checkpoint."""
        self._bucket.blob(self._prefix + name).upload_from_string(data)

    def delete(self, name):
        """Remove a checkpoint."""
        self._bucket.blob(self._prefix + name).delete()


class BlobStorage:
    """A folder of a Blob Storage container."""

    def __init__(self, container, prefix):
        self._container = container
        self._prefix = prefix

    def names(self):
        """The names of all checkpoints."""
        found = self._container.list_blob_names(name_starts_with=self._prefix)
        return [name.removeprefix(self._prefix) for name in found]

    def read(self, name):
        """What is in a checkpoint."""
        return self._container.download_blob(self._prefix + name).readall()

    def write(self, name, data):
        """Write a checkpoint; a repeated step overwrites it."""
        self._container.upload_blob(self._prefix + name, data, overwrite=True)

    def delete(self, name):
        """Remove a checkpoint."""
        self._container.delete_blob(self._prefix + name)


def checkpoints_of(uri, run):
    """The checkpoints of a run under an address. Each cloud's client is imported where it is needed."""
    address = urlsplit(uri)
    prefix = f"{address.path.strip('/')}/{run}/".lstrip("/")
    match address.scheme:
        case "file":
            return Checkpoints(Directory(Path(unquote(address.path)) / run))
        case "s3":
            import boto3

            return Checkpoints(S3(boto3.client("s3"), address.netloc, prefix))
        case "gs":
            from google.cloud import storage

            return Checkpoints(CloudStorage(storage.Client(), address.netloc, prefix))
        case "abfss":
            from azure.identity import WorkloadIdentityCredential
            from azure.storage.blob import ContainerClient

            account, container = container_of(uri)
            client = ContainerClient(account, container, credential=WorkloadIdentityCredential())
            return Checkpoints(BlobStorage(client, prefix))
        case _:
            raise SystemExit(f'CHECKPOINT_URI: got "{uri}"; allowed: file://, s3://, gs:// or abfss://')


def container_of(uri):
    """The account's address and the container's name in `abfss://<container>@<account>.blob.core.windows.net`."""
    address = urlsplit(uri)
    return f"https://{address.hostname}", address.username
