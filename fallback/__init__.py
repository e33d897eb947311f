"""The fallback controller: moves training jobs to the next tier of their ladder, and back to a better one."""
