"""What a new project is made of: links to the workflows, Makefile and stack files of this repository, and texts of its own."""
