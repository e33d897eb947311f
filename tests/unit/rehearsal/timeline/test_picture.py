"""The picture of a walk down the ladder: pods as bars, moves as arrows, and the picture in the documentation."""

from pathlib import Path

from pulumi_holdfast.rehearsal.timeline.picture import read_svg, render_svg

PICTURES = Path(__file__).resolve().parents[4] / "docs" / "pictures"


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
