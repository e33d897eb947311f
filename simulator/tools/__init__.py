"""The programs a rehearsal runs: found on PATH, or built here from pinned Go modules."""
