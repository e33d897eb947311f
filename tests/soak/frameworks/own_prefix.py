"""Ray's way to an object store of which a pod may use its own prefix alone, run by the Python that has Ray."""

# Its packages are those of tests/soak/frameworks/requirements.txt, which this environment has not.
# pyright: basic, reportMissingImports=false

import pyarrow.fs
from fsspec.implementations.memory import MemoryFileSystem
from train_on_ray import OwnPrefix, storage


class Guarded(MemoryFileSystem):
    """A store that answers as S3 does: 403 for whatever is not there, for buckets, and for making one."""

    def info(self, path, **kwargs):
        try:
            found = super().info(path, **kwargs)
        except FileNotFoundError:
            raise PermissionError(path) from None
        if found["type"] == "directory":
            raise PermissionError(path)
        return found

    def mkdir(self, path, create_parents=True, **kwargs):
        raise PermissionError(path)


def main():
    store = Guarded()
    files = pyarrow.fs.PyFileSystem(OwnPrefix(store))
    print(files.get_file_info("ckpt/vision/run/state.json").type.name)
    files.create_dir("ckpt/vision/run")
    with files.open_output_stream("ckpt/vision/run/state.json") as file:
        file.write(b"{}")
    for path in ("ckpt/vision/run/state.json", "ckpt/vision/run", "ckpt/vision/other"):
        print(files.get_file_info(path).type.name)
    found = storage("s3://ckpt/vision")
    assert found["storage_path"] == "ckpt/vision", found
    assert found["storage_filesystem"].handler.fs.protocol[0] == "s3", found


if __name__ == "__main__":
    main()
