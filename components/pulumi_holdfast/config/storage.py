"""The section of a volume of data, which the clouds extend."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, ClassVar, Final

from pydantic import Field

from pulumi_holdfast.config.fields import Section, Text
from pulumi_holdfast.ladder.ladder import HIGHEST_PRICE

ZONE_TEXT: Final = "of a `parallel` volume, its zone: its pods run in this zone only. A namespace whose jobs could then not reach on-demand is refused"
SIZE_TEXT: Final = "the size of a file system ([which ones there are](storage.md#sizes)); not of a bucket"
THROUGHPUT_TEXT: Final = "of a `parallel` volume, MB/s for each TiB"

#: The largest file system.
MOST_GIB: Final = 1_000_000

#: The longest name: the logical names in a state and the names of clouds contain it.
LONGEST_NAME: Final = 20


BucketName = Annotated[
    str,
    Text(
        "the name of a bucket",
        "my-datasets",
        r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]",
        "Write the name alone, without s3:// or gs://, and without a path.",
    ),
]


VolumeName = Annotated[
    str,
    Text(
        f"1 to {LONGEST_NAME} lower-case letters, digits and hyphens; no hyphen at the start or the end",
        "datasets",
        rf"[a-z0-9]([-a-z0-9]{{0,{LONGEST_NAME - 2}}}[a-z0-9])?",
        "Write a shorter name, such as datasets.",
    ),
]

#: The field of a stack's volumes, whose type each cloud has of its own.
STORAGE_FIELD: Final = Field(
    # More than a pod mounts.
    max_length=20,
    description="volumes of data, each with a claim in the namespaces that may mount it ([below](#storage))",
    examples=["[{name: datasets, kind: bucket, namespaces: [vision]}]"],
)


class VolumeKind(StrEnum):
    """What is behind a volume."""

    BUCKET = "bucket"
    SHARED = "shared"
    PARALLEL = "parallel"


class VolumeSection(Section):
    """A volume of data, with a claim of its name in each namespace that may mount it."""

    fixes: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("size", "capacity", "storage"), "Write sizeGiB."),
        **dict.fromkeys(
            ("protect", "retain", "retainOnDelete"), "Leave it out, or write deleteWithStack: true."
        ),
        "namespace": "Write namespaces, a list.",
        "readOnly": "Leave it out: a bucket is mounted for reading alone, a file system for writing, too.",
    }

    name: VolumeName = Field(description="the name of the claims")
    kind: VolumeKind = Field(
        description="`bucket`: objects as files, to read; `shared`: a file system in all zones; `parallel`: Lustre, in one zone "
        "([what each is](storage.md))",
        examples=["bucket"],
    )
    namespaces: tuple[str, ...] = Field(
        min_length=1,
        description="the training namespaces whose jobs may mount it; all of them see the same files",
        examples=["[vision]"],
    )
    size_gib: int | None = Field(
        default=None, alias="sizeGiB", ge=100, le=MOST_GIB, description=SIZE_TEXT, examples=["2400"]
    )
    zone: str | None = Field(default=None, description=ZONE_TEXT)
    price: float | None = Field(
        default=None,
        gt=0,
        le=HIGHEST_PRICE,
        description="what it costs, in USD an hour; by default a published price of its size. `holdfast cost` and `budget` count it",
        examples=["1.34"],
    )
    delete_with_stack: bool = Field(
        default=False,
        description="`true` deletes what the stack created with it. Otherwise the stack cannot delete it, and when it is no longer "
        "protected leaves it behind; with `protected: false` of the stack it is deleted, too",
    )
