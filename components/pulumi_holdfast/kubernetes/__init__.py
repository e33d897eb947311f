"""What every cluster gets: operators, admission, the fallback controller, training namespaces."""
