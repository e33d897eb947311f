"""The client of one API server: requests, informers, leader election, and Events."""
