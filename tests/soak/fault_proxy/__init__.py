"""What stands before an API server and loses, refuses and holds up requests as it is told."""
