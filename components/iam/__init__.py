"""IAM documents as values: statements in Python, JSON where AWS reads them."""
