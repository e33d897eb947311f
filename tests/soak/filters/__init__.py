"""Drawn pods and nodes, judged by the checks and by the filters of the real scheduler, compiled into a program."""
