"""The picture of a walk down the ladder: pods as bars, moves as arrows, and the picture in the documentation."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from pulumi_holdfast.rehearsal.timeline.picture import Picture, picture_of, read_svg, render_svg
from pulumi_holdfast.rehearsal.timeline.traces import Move, PodTrace

START = datetime(2026, 11, 23, 12, tzinfo=UTC)
SVG = "{http://www.w3.org/2000/svg}"
PICTURES = Path(__file__).resolve().parents[4] / "docs" / "pictures"


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def pod(
    name: str, pool: str, born: float, ended: float | None, *, bound: float | None = None, lost: str = ""
) -> PodTrace:
    return PodTrace(
        uid=name,
        name=name,
        pool=pool,
        attempt=0,
        child="job",
        owner="o",
        born_at=at(born),
        bound_at=None if bound is None else at(bound),
        ended_at=None if ended is None else at(ended),
        lost=lost,
    )


def drawn() -> Picture:
    gang = [
        pod("a", "spot", 0, 20, bound=2, lost="EvictionByEvictionAPI"),
        pod("b", "spot", 0, 21, bound=3),
        pod("c", "on-demand", 24, None, bound=30),
    ]
    move = Move(source="spot", target="on-demand", suspended_at=at(20), gone_at=at(21), resumed_at=at(24))
    return picture_of("train", ("spot", "on-demand"), gang, [move], ["3 evictions"], at(60))


def test_pods_that_exist_together_have_rows_of_their_own() -> None:
    bars = drawn().bars
    assert [(bar.lane, bar.row) for bar in bars] == [(0, 0), (0, 1), (1, 0)]
    assert [bar.lost for bar in bars] == [True, False, False]
    assert bars[2].ends == 60


def test_a_move_is_an_arrow_from_the_suspension_to_the_resumption() -> None:
    (arrow,) = drawn().arrows
    assert (arrow.source, arrow.target, arrow.begins, arrow.ends) == (0, 1, 20, 24)


def test_the_picture_is_valid_xml_with_its_data() -> None:
    svg = render_svg(drawn())
    root = ET.fromstring(svg)
    assert len(root.findall(f"{SVG}rect[@class='runs']")) == 3
    assert read_svg(svg) == drawn()


def test_names_are_escaped() -> None:
    odd = picture_of("<b>&", ("a<b",), [pod("a", "a<b", 0, 5, bound=1)], [], [], at(6))
    assert read_svg(render_svg(odd)).pools == ("a<b",)
    assert ET.fromstring(render_svg(odd)).findtext(f"{SVG}title") == "<b>&"


def test_a_text_that_is_not_a_picture_is_refused() -> None:
    with pytest.raises(ValueError, match="--picture"):
        read_svg("<svg/>")


def test_the_picture_in_the_documentation_was_drawn_by_a_run_as_expected() -> None:
    svg = (PICTURES / "ladder.svg").read_text(encoding="utf-8")
    picture = read_svg(svg)
    assert render_svg(picture) == svg
    assert [(arrow.source, arrow.target) for arrow in picture.arrows] == [(0, 1), (1, 2), (2, 0)]
    assert sum(bar.lost for bar in picture.bars) >= 3


def test_the_picture_of_a_job_in_another_cluster_was_drawn_by_a_run_in_which_it_came_back() -> None:
    svg = (PICTURES / "elsewhere.svg").read_text(encoding="utf-8")
    picture = read_svg(svg)
    assert render_svg(picture) == svg, "run `make chaos TWO=1 PICTURE=…` again: the drawing has changed since"
    first, *_, last = picture.arrows
    assert "/" in picture.pools[first.target]
    assert "/" not in picture.pools[last.target]
    at_home = [bar for bar in picture.bars if "/" not in picture.pools[bar.lane]]
    there = [bar for bar in picture.bars if "/" in picture.pools[bar.lane]]
    assert not any(home.begins < copy.ends and copy.begins < home.ends for home in at_home for copy in there)
