"""The cost of a stack from its configuration: `holdfast cost STACK`, the preview, the budget, the pull request's comment."""
