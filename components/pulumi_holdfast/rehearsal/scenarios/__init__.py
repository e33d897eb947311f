"""What the platform does, played on a running one: the demo, the rehearsal and the cluster tests share these scenarios."""
