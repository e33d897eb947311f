"""The template of a new project, made from the workflows and stack files of this repository: `holdfast init`."""
