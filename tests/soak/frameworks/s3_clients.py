"""Asks for checkpoints as ordinary clients of S3 do, run by the Python that has them: `s3_clients.py ENDPOINT CHECKPOINT_URI`."""

# Its packages are those of requirements.txt, which this environment has not.
# pyright: basic, reportMissingImports=false

import sys

import boto3
import pytest
import s3fs
from botocore.exceptions import ClientError
from pyarrow.fs import FileType, S3FileSystem

REGION = "us-east-1"


def main(endpoint, uri):
    """Find nothing, write, and find it, with each client; the bucket is there for all."""
    path = uri.removeprefix("s3://")
    bucket, _, prefix = path.partition("/")

    files = s3fs.S3FileSystem(endpoint_url=endpoint, client_kwargs={"region_name": REGION})
    assert files.exists(bucket)
    assert not files.exists(f"{path}/s3fs/state.json")
    files.makedirs(f"{path}/s3fs", exist_ok=True)
    files.pipe_file(f"{path}/s3fs/state.json", b"{}")
    assert files.exists(f"{path}/s3fs/state.json")
    assert files.ls(f"{path}/s3fs") == [f"{path}/s3fs/state.json"]

    arrow = S3FileSystem(endpoint_override=endpoint, region=REGION, scheme="http")
    assert arrow.get_file_info(f"{path}/arrow/state.json").type is FileType.NotFound
    assert arrow.get_file_info(f"{path}/s3fs").type is FileType.Directory
    arrow.create_dir(f"{path}/arrow")
    with arrow.open_output_stream(f"{path}/arrow/state.json") as file:
        file.write(b"{}")
    assert arrow.get_file_info(f"{path}/arrow/state.json").type is FileType.File

    s3 = boto3.client("s3", endpoint_url=endpoint, region_name=REGION)
    s3.head_bucket(Bucket=bucket)
    s3.put_object(Bucket=bucket, Key=f"{prefix}/boto3/state.json", Body=b"{}")
    assert s3.head_object(Bucket=bucket, Key=f"{prefix}/boto3/state.json")["ContentLength"] == 2
    with pytest.raises(ClientError, match="404"):
        s3.head_object(Bucket=bucket, Key=f"{prefix}/boto3/other.json")


if __name__ == "__main__":
    main(*sys.argv[1:])
