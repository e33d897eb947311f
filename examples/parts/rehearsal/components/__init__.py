"""The components of this team, in a package with the same name as one of Holdfast's folders."""
