"""The same training as a Ray task: it runs on a worker, which is on spot; this program waits on the head, which is not.

A worker that is lost costs one retry of Ray's; the task then goes on from its latest checkpoint on another one.
For Ray Train give `RunConfig` a `storage_filesystem` made of `adlfs` (`anon=False`), which uses the same credentials.
"""

import ray
import train

ray.init()
ray.get(ray.remote(num_cpus=3, max_retries=5)(train.main).remote())
