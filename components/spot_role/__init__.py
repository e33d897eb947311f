"""The role without which EC2 starts no spot machine: one for each account, shared by all who use spot in it."""
