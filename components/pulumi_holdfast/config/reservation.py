"""Reserved capacity in the configuration: the fields that all clouds share, and their rules."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, ClassVar

from pydantic import Field, PlainSerializer, PlainValidator

from pulumi_holdfast.config.base import Section
from pulumi_holdfast.config.fields import error_with_fix
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.quantities import format_duration
from pulumi_holdfast.ladder.windows import TIME_ALLOWED, CapacityWindow, format_time, parse_time


def _moment(value: object) -> datetime:
    # YAML parses an unquoted time as a timestamp.
    if isinstance(value, datetime):
        return value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    found = parse_time(value) if isinstance(value, str) else None
    if found is None:
        raise error_with_fix('Write a date and a time in UTC, such as "2026-12-01T11:30:00Z".')
    return found


Moment = Annotated[
    datetime,
    PlainValidator(_moment, json_schema_input_type=str),
    PlainSerializer(format_time, return_type=str),
]


class ReservationSection(Section):
    """Machines that are reserved, and when: with `ends`, jobs leave them before.

    `taken_back_early` is the time before the end from which jobs leave: the cloud reclaims the machines, and a job needs
    time to move.
    """

    fixes: ClassVar[Mapping[str, str]] = {
        "starts": "Write begins.",
        "start": "Write begins.",
        "startDate": "Write begins.",
        "end": "Write ends.",
        "endDate": "Write ends.",
        "count": "Write maxNodes of the pool: how many machines the reservation has.",
    }
    taken_back_early: ClassVar[timedelta] = timedelta(minutes=10)

    begins: Moment | None = Field(default=None, description=TIME_ALLOWED, examples=['"2026-12-01T11:30:00Z"'])
    ends: Moment | None = Field(default=None, description=TIME_ALLOWED, examples=['"2026-12-08T11:30:00Z"'])

    @property
    def window(self) -> CapacityWindow:
        """When jobs can use the machines."""
        return CapacityWindow(
            begins=self.begins, ends=None if self.ends is None else self.ends - self.taken_back_early
        )


def reservation_problems(
    capacity: CapacityType,
    sources: Mapping[str, Section | None],
    at: str,
    *,
    example: str,
    now: datetime | None = None,
) -> Iterator[Problem]:
    """The problems of a pool's source of reserved capacity, at the time `now`.

    `sources` are the fields that name one, with their values; `example` is one of them in YAML.
    """
    given = [name for name, source in sources.items() if source is not None]
    allowed = " or ".join(sources)
    if capacity is not CapacityType.RESERVED:
        for name in given:
            yield Problem(
                field=f"{at}.{name}",
                value=f"a value on a pool that is {capacity.value}",
                allowed=f"{name} on a pool with capacity: reserved",
                fix=f"Write capacity: reserved, or remove {name}.",
            )
    elif len(given) != 1:
        yield Problem(
            field=at,
            value=f"capacity: reserved with {' and '.join(given) or f'no {allowed}'}",
            allowed=f"exactly one source of reserved capacity: {allowed}",
            fix=f"Add `{example}`." if not given else "Remove all but one of them; one pool has one source.",
        )
    for name in given:
        source = sources[name]
        if isinstance(source, ReservationSection):
            yield from _time_problems(source, now or datetime.now(UTC), f"{at}.{name}")


def _time_problems(reservation: ReservationSection, now: datetime, at: str) -> Iterator[Problem]:
    window, ends = reservation.window, reservation.ends
    if ends is None or window.ends is None:
        return
    early = format_duration(reservation.taken_back_early)
    if window.begins is not None and window.begins >= window.ends:
        yield Problem(
            field=f"{at}.ends",
            value=f'"{format_time(ends)}", less than {early} after begins, "{format_time(window.begins)}"',
            allowed=f"a time more than {early} after begins, because jobs leave {early} before the end",
            fix="Write both times as the cloud shows them for the reservation.",
        )
    elif window.is_over(now):
        yield Problem(
            field=f"{at}.ends",
            value=f'"{format_time(ends)}", which is over for jobs since {format_time(window.ends)}',
            allowed=f"a time more than {early} from now, because jobs leave {early} before the end",
            fix="Write the reservation that follows it, or remove the pool and its tiers.",
        )
