"""Renders the policies that check jobs in the API server, for programs that do not use the components of this repository."""
