"""`holdfast cost`: the hourly cost of a stack, with spot prices of the moment."""
