"""What makes a stack on this machine: its configuration and its composition root."""
