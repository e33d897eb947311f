"""The components of this team: their package has the name that Holdfast's folder has, too."""
