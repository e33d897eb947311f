"""How long a scene waits for one thing."""

from typing import Final

# Karpenter waits up to 10 s for more pods before it buys; a busy machine takes its time for the rest.
SECONDS: Final = 180.0
