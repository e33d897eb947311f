"""What the clouds share of a stack file: sections, rules, messages."""
