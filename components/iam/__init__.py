"""IAM as values: statements in Python and JSON where AWS reads them, principals where Google Cloud does."""
