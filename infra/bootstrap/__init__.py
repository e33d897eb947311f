"""The state store and the key of a cloud's stacks, made before the first stack: `holdfast bootstrap`."""
