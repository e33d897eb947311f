"""The picture of a training's steps over time."""

import threading
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

from pulumi_holdfast.rehearsal.timeline.steps import StepPoint, render_steps, sampled

START = datetime(2030, 5, 1, 12, 0, tzinfo=UTC)
SVG = "{http://www.w3.org/2000/svg}"


def point(seconds: float, attempt: str, pool: str, step: int) -> StepPoint:
    return StepPoint(at=START + timedelta(seconds=seconds), attempt=attempt, pool=pool, step=step)


def test_each_attempt_is_a_line_in_the_color_of_its_pool() -> None:
    points = [
        point(0, "a", "spot", 0),
        point(5, "a", "spot", 50),
        point(8, "b", "spot", 40),
        point(10, "c", "<b>", 100),
    ]
    svg = ElementTree.fromstring(render_steps("train & save", ("spot", "<b>"), points))
    lines = svg.findall(f"{SVG}polyline")
    colors = [line.get("stroke") for line in lines]
    assert len(colors) == 3
    assert colors[0] == colors[1] != colors[2]
    assert lines[0].get("points") == "56.0,332.0 470.0,194.0"
    assert {"train & save", "— spot", "— <b>", "100", "10 s"} <= {
        text.text for text in svg.findall(f"{SVG}text")
    }


def test_a_training_without_a_step_has_an_empty_picture() -> None:
    assert not ElementTree.fromstring(render_steps("none", ("spot",), [])).findall(f"{SVG}polyline")


def test_steps_are_sampled_until_the_end_of_the_block() -> None:
    asked = threading.Event()

    def last() -> StepPoint | None:
        asked.set()
        return point(0, "a", "spot", 1)

    with sampled(last) as points:
        assert asked.wait(30)
    assert points
    assert set(points) == {point(0, "a", "spot", 1)}
