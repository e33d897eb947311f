"""What makes a stack on Azure: its configuration, its composition root, and what is checked before an update."""
