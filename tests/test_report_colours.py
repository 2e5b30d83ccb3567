"""The report's colours, measured: readable on their paper, and apart from each other for colour-blind readers too.

Distances are in OKLab (Ottosson 2020), where about 0.02 is just noticeable; colour blindness by Machado et al. 2009,
full severity.
"""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

from naysay import report

CSS = (Path(report.__file__).parent / "assets" / "report.css").read_text("utf-8")
LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
LAB = np.array(
    [
        [0.2104542553, 0.793617785, -0.0040720468],
        [1.9779984951, -2.428592205, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.808675766],
    ]
)
SIGHT = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]]
    ),
}


def colours(theme):
    """The colour variables of a theme as linear RGB; the first block of the style sheet is light, the second dark."""
    block = re.findall(r":root \{(.*?)\}", CSS, re.S)[("light", "dark").index(theme)]
    return {name: linear(code) for name, code in re.findall(r"--(\w+): (#[0-9a-f]{3,6})", block)}


def linear(code):
    digits = code[1:] if len(code) == 7 else "".join(2 * digit for digit in code[1:])
    s = np.array([int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)])
    return np.where(s <= 0.04045, s / 12.92, ((s + 0.055) / 1.055) ** 2.4)


def oklab(rgb):
    return np.cbrt(np.clip(rgb, 0, 1) @ LMS.T) @ LAB.T


def contrast(first, second):
    light, dark = sorted((float(rgb @ [0.2126, 0.7152, 0.0722]) for rgb in (first, second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("sight", SIGHT)
def test_any_two_of_the_ten_colours_can_be_told_apart(theme, sight):
    palette = colours(theme)
    seen = [oklab(SIGHT[sight] @ palette[f"c{k}"]) for k in range(10)]
    closest = min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2))
    # tritanopia, one in ten thousand, gets 0.074: shapes, dashes and names tell the rest
    assert closest > (0.07 if sight == "tritanopia" else 0.09)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_has_a_contrast_of_4_5_and_marks_of_3(theme):
    palette = colours(theme)
    for text, paper in itertools.product(("ink", "soft", "accent", "wrong"), ("paper", "raised", "wash")):
        assert contrast(palette[text], palette[paper]) >= 4.5, (text, paper)
    assert contrast(palette["paper"], palette["accent"]) >= 4.5
    for k, paper in itertools.product(range(10), ("paper", "raised")):
        assert contrast(palette[f"c{k}"], palette[paper]) >= 3, (k, paper)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_numbers_in_heat_maps_stay_readable_at_every_depth(theme):
    palette = colours(theme)
    for depth in np.linspace(0, 1, 201):
        lab = depth * oklab(palette["heat"]) + (1 - depth) * oklab(palette["wash"])
        cell = np.clip(((lab @ np.linalg.inv(LAB).T) ** 3) @ np.linalg.inv(LMS).T, 0, 1)
        tone = report.mass.Cell(float(depth), "").tone
        text = {"deep": palette["deep"], "mid": np.zeros(3), "": palette["shallow"]}[tone]
        assert contrast(text, cell) >= 4.45, depth  # 4.5 but for rounding at the two changes
