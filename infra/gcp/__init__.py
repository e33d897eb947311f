"""What makes a stack on Google Cloud: its configuration, its composition root, and what is checked before an update."""
