"""The one parser of configuration: frozen models, one for each cloud, and rules across their fields."""
