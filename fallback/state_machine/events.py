"""What the controller says about a job: a Kubernetes Event, a log line and a metric in one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class JobEvent:
    """One thing to say. `reason` is CamelCase, as an Event has it; `message` says what is and what to do.

    A report that is not standing belongs to the decision's actions and is said once they are done. A standing one
    describes how things are and comes with every decision for as long as they are so: it is said when it is new for
    the job, or differs, and again only after it has been absent.
    """

    reason: str
    message: str
    is_warning: bool = False
    is_standing: bool = False
