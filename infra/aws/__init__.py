"""What makes a stack on AWS: its configuration, its composition root, and what is checked before an update."""
