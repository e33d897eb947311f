"""The client of one API server: requests, caches, Events, a queue of work, and leader election."""
