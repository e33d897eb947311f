"""The alerts and the dashboard, judged by Prometheus' own promtool on series that make each alert fire or not."""
