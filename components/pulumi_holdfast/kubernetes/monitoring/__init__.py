"""Monitoring of the fallback controller: a Grafana dashboard and Prometheus alerts."""
