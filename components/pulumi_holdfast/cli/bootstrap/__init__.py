"""Creates the state store and the key of a cloud's stacks: `holdfast bootstrap`."""
