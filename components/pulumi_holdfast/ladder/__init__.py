"""The domain, pure: tiers, pools, shapes, machines, prices, and the walk down a ladder."""
