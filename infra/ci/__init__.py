"""What the workflows of a repository do with a stack: the comment on a pull request, and the issue about drift."""
