"""The texts that workflows publish about a stack: the comment on a pull request, and the issue about drift."""
