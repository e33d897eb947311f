"""Tiers in other clusters: a job's copy runs there while the job stays suspended at home. See docs/adr/0044."""
