"""The report without a browser: what it holds, how numbers are written, and that names cannot become markup."""

import base64
import dataclasses
import functools
import hashlib
import io
import itertools
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from sklearn.datasets import load_digits

from naysay import report as r
from naysay.errors import InputError
from naysay.report.mass import png_uri
from naysay.report.numerals import show, show_value, ticks

SCHEMES = ("none", "RSS", "RMS", "DSS", "DMS")
HOSTILE = (
    "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=2>\"' onmouseover='window.hacked=3' "
    "{{7*7}} &amp;\u2028"
)


@functools.cache
def digits():
    """All digits, one label each, shared among the 32 nearest: enough for a report that looks like a real one."""
    bunch = load_digits()
    x, y = bunch.data.astype(np.float32), bunch.target
    rng = np.random.default_rng(0)
    given = (y + rng.integers(1, 10, len(y))) % 10
    comp = np.eye(10)[given]
    distance = ((x**2).sum(1)[:, None] + (x**2).sum(1)) - 2 * x @ x.T
    np.fill_diagonal(distance, np.inf)
    near = np.argsort(distance, axis=1)[:, :32]
    shared = comp
    for _ in range(5):
        shared = 0.1 * comp + 0.9 * shared[near].mean(1)
    p = np.exp(-60 * shared)
    p /= p.sum(1, keepdims=True)
    return x, y, given, comp, near, shared, p, np.rint(bunch.images * (255 / 16)).astype(np.uint8)


def curve(start, end, n, speed, seed, noise=0.004):
    t = np.arange(n)
    return end + (start - end) * np.exp(-t / speed) + np.random.default_rng(seed).normal(0, noise, n)


def results():
    columns = [
        r.Column("Estimated accuracy", note="URE of the 0-1 loss ± standard error, 144 held-out rows"),
        r.Column("SCEL", unit="", digits=3, better="lower", note="± standard error"),
        r.Column("Test accuracy", note="355 digits ± sd over 3 seeds", needs_truth=True),
        r.Column("Sharing efficiency", note="last epoch", needs_truth=True),
        r.Column("Time, s", unit="", better="lower", cost=True),
    ]
    rows = [
        ("SCL-NL", (0.812, 0.061), (2.224, 0.011), (0.862, 0.011), 0.871, 3.1),
        ("SCL-NL + RSS", (0.874, 0.055), (2.213, 0.010), (0.913, 0.008), 0.921, 3.3),
        ("SCL-NL + RMS", (0.936, 0.048), (2.206, 0.009), (0.948, 0.006), 0.962, 3.6),
        ("SCL-NL + DSS", (0.895, 0.053), (2.211, 0.010), (0.921, 0.007), 0.934, 3.3),
        ("SCL-NL + DMS", (0.951, 0.045), (2.204, 0.009), (0.954, 0.005), 0.967, 3.6),
        ("kNN decoding", (0.924, 0.049), (None, None), (0.933, None), None, 0.2),
    ]
    methods = [
        r.Method(name, [r.Value(*a), r.Value(*b), r.Value(*c), r.Value(d), r.Value(e)], chosen=name.endswith("DMS"))
        for name, a, b, c, d, e in rows
    ]
    note = "One uniform complementary label for each of 1,442 digits. Settings were chosen by the estimate alone."
    return r.Results(columns, methods, note, ("Estimated accuracy", "Test accuracy"))


@functools.cache
def example():
    """A report of the digits with every part filled."""
    x, y, given, comp, near, shared, p, images = digits()
    classes = [str(k) for k in range(10)]
    epochs = np.arange(1, 101)
    ends = {"none": 0.862, "RSS": 0.913, "RMS": 0.948, "DSS": 0.921, "DMS": 0.954}
    accuracy = [curve(0.2, end, 100, 9, i) for i, end in enumerate(ends.values())]
    estimate = [curve(0.2, end - 0.01, 100, 9, i + 9, 0.012) for i, end in enumerate(ends.values())]

    def item(row, neighbours=(), image=True):
        return r.Item(
            str(row),
            [given[row]],
            images[row] if image else None,
            p[row],
            augmented=shared[row] if len(neighbours) else None,
            y_true=int(y[row]),
            neighbors=[item(other) for other in neighbours],
        )

    plane = r.project_2d(x)
    by_class = {
        name: np.stack([labels[y == k].mean(0) for k in range(10)])
        for name, labels in (("before", comp), ("after", shared))
    }
    margin = np.sort(p, axis=1)[:, -1] - np.sort(p, axis=1)[:, -2]
    return r.Report(
        title="Handwritten digits from labels that say what they are not",
        summary="With one complementary label per digit, SCL-NL with DMS augmentation reaches 95.4 % on the test set, "
        "9.2 points above the same loss without augmentation. It was chosen without a single ordinary label.",
        classes=classes,
        key_figures=[
            r.KeyFigure("Estimated accuracy", r.Value(0.951, 0.045), note="standard error, 144 held-out rows"),
            r.KeyFigure("Test accuracy", r.Value(0.954, 0.005), note="sd over 3 seeds, 355 digits", needs_truth=True),
            r.KeyFigure(
                "Gain by augmentation",
                r.Value(0.092, 0.012),
                unit="%",
                note="DMS over none, in points",
                needs_truth=True,
            ),
            r.KeyFigure(
                "Complementary labels", r.Value(1442), unit="", digits=0, note="one for each training digit, uniform"
            ),
        ],
        results=results(),
        learning=[
            r.Curves(
                "Test accuracy",
                epochs,
                [
                    r.Series(name, a, a - 0.01, a + 0.01, needs_truth=True)
                    for name, a in zip(ends, accuracy, strict=True)
                ],
                note="Bands: one standard deviation over 3 seeds.",
            ),
            r.Curves(
                "Estimated accuracy, from complementary labels alone",
                epochs,
                [r.Series(name, a, a - 0.05, a + 0.05) for name, a in list(zip(ends, estimate, strict=True))[::4]],
                note="Bands: one standard error of 144 held-out rows.",
            ),
        ],
        sharing=[
            r.Curves(
                "Confidence on complementary labels, DMS",
                epochs,
                [
                    r.Series("seen", curve(0.1, 0.0012, 100, 6, 3, 0.0002)),
                    r.Series("unseen", curve(0.1, 0.0047, 100, 12, 4, 0.0003), needs_truth=True),
                    r.Series("augmented", curve(0.1, 0.0026, 100, 8, 5, 0.0002), needs_truth=True),
                ],
                note="The model’s mean probability on labels given, never given, and given by sharing.",
            ),
            r.Curves(
                "Sharing efficiency",
                epochs,
                [
                    r.Series("none", curve(0.1, 0.871, 100, 12, 6), needs_truth=True),
                    r.Series("DMS", curve(0.1, 0.967, 100, 9, 7), needs_truth=True),
                ],
                note="1 is perfect: no confidence left on any wrong class.",
            ),
        ],
        heat_maps=[
            r.HeatMap("As given", by_class["before"], classes, classes, "true class", needs_truth=True),
            r.HeatMap("After DMS", by_class["after"], classes, classes, "true class", needs_truth=True),
        ],
        feature_map=r.FeatureMap(
            plane.points,
            p.argmax(1),
            [str(row) for row in plane.rows],
            p.max(1),
            given[:, None],
            y,
            note=f"The two directions of greatest variance of the pixels, {plane.explained.sum():.0%} of it.",
        ),
        examples=[item(row, near[row][:8]) for row in (17, 42, 255, 512, 901, 1300)],
        doubtful=[item(row) for row in np.argsort(margin, kind="stable")[:12]],
        config={
            "loss": "scl-nl",
            "augmentation": {"scheme": "dms", "n_neighbors": 64, "alpha": 0.1, "gamma": 1.0, "rounds": 100},
            "optimizer": {"name": "adamw", "lr": 0.001, "weight_decay": 1e-5},
            "epochs": 100,
            "batch_size": 256,
            "seeds": [0, 1, 2],
        },
        versions={
            "naysay": "0.1.0",
            "python": "3.11.7",
            "torch": "2.13.0+cpu",
            "numpy": "2.4.6",
            "scikit-learn": "1.9.1",
        },
        facts={"hardware": "2 cores, no GPU"},
        data_hash="blake2b:5f1d3a9c0e7b42d8a6c4b1f09e83d7720c6a5e1f",
        date="2026-11-15 18:04 UTC",
        command="naysay demo --out report.html",
        predictions=[
            r.Dots(
                "Class shares",
                [r.Column("predicted"), r.Column("implied")],
                [(name, [r.Value(0.1), r.Value(0.12, low=0.05, high=0.2)]) for name in classes],
            ),
            r.Bars("Confidence", [("90 to 100 %", 1200), ("80 to 90 %", 242)]),
        ],
    )


def sixty():
    """A report of 60 classes and 25 methods."""
    rng, names = np.random.default_rng(0), [f"some long class name {k}" for k in range(60)]
    heat = rng.random((60, 60)) * 0.03
    heat[7] = np.nan
    heat[9, 9] = 0.9  # a class of a single item
    columns = [r.Column("estimated accuracy"), r.Column("held-out loss", "", 3, "lower")]
    methods = [
        r.Method(
            f"candidate {k}",
            [r.Value(0.5 + k / 100, low=0.4 + k / 100, high=0.6 + k / 100), r.Value(2 - k / 50)],
            chosen=k == 20,
        )
        for k in range(25)
    ]
    shares = [(name, [r.Value(1 / 60), r.Value(None, low=0.0, high=0.03)]) for name in names]
    return r.Report(
        "Sixty",
        classes=names,
        results=r.Results(columns, methods, drawn=["estimated accuracy"], by="held-out loss"),
        heat_maps=[r.HeatMap(title, heat, names, names) for title in ("before", "after")],
        feature_map=r.FeatureMap(rng.normal(size=(600, 2)), np.arange(600) % 60),
        doubtful=[r.Item("7", [1], probabilities=[0.5, 0.4, 0.1], values=[("petal length", "1.4")])],
        predictions=[r.Dots("Class shares", [r.Column("predicted"), r.Column("implied")], shares)],
    )


def hostile():
    """A report whose every text is an attack, in the body of the page and in the data of the script."""
    item = r.Item(HOSTILE, [0, 1], probabilities=[0.5, 0.3, 0.2], augmented=[0.2, 0.3, 0.5], y_true=1, note=HOSTILE)
    item = dataclasses.replace(item, values=[(HOSTILE, HOSTILE)])
    return r.Report(
        HOSTILE,
        HOSTILE,
        [f"{HOSTILE}{k}" for k in range(3)],
        [r.KeyFigure(HOSTILE, r.Value(0.5, 0.1), note=HOSTILE)],
        r.Results(
            [r.Column(HOSTILE, note=HOSTILE)],
            [r.Method(HOSTILE, [r.Value(0.5, 0.1)], note=HOSTILE)],
            HOSTILE,
            [HOSTILE],
        ),
        [r.Curves(HOSTILE, [0, 1], [r.Series(HOSTILE, [0, 1])], HOSTILE, note=HOSTILE)],
        [],
        [r.HeatMap(HOSTILE, np.eye(3), [HOSTILE] * 3, [HOSTILE] * 3, HOSTILE, HOSTILE, HOSTILE)],
        r.FeatureMap(np.eye(3, 2), [0, 1, 2], [HOSTILE] * 3, [0.5] * 3, [[1]] * 3, [0] * 3, HOSTILE),
        [dataclasses.replace(item, neighbors=[item])],
        [item],
        config={HOSTILE: {HOSTILE: HOSTILE}},
        versions={HOSTILE: HOSTILE},
        facts={HOSTILE: HOSTILE},
        data_hash=HOSTILE,
        date=HOSTILE,
        command=HOSTILE,
        predictions=[
            r.Dots(HOSTILE, [r.Column(HOSTILE)], [(HOSTILE, [r.Value(0.5, low=0.4, high=0.6)])], HOSTILE),
            r.Bars(HOSTILE, [(HOSTILE, 1.0)], note=HOSTILE),
        ],
    )


class Page(HTMLParser):
    """A page taken apart: its elements in order, its ids, its text outside of scripts and styles, its data block."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.text, self.data, self._inside = [], "", "", ""
        self.feed(text)
        self.ids = [attributes["id"] for _, attributes in self.elements if "id" in attributes]

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self._inside = tag

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside == "script":
            self.data = self.data or data
        elif self._inside != "style":
            self.text += data

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def page():
    return Page(r.render(example()))


PARTS = {
    "results": "results",
    "predictions": "predictions",
    "learning": "learning",
    "sharing": "sharing",
    "heat_maps": "labels",
    "feature_map": "map",
    "examples": "examples",
    "doubtful": "doubtful",
    "config": "setup",
    "versions": "setup",
    "date": "setup",
}


@pytest.mark.parametrize("part", PARTS)
def test_each_part_stands_alone_with_its_section_and_its_line_in_the_contents(part):
    page = Page(r.render(r.Report("One part", **{part: getattr(example(), part)})))
    assert [link["href"] for link in page.all("a")] == ["#main", f"#{PARTS[part]}"]
    assert [section["id"] for section in page.all("section")] == [PARTS[part]]


def test_a_title_is_enough_for_a_page():
    page = Page(r.render(r.Report("Nothing else")))
    assert "Nothing else" in page.text
    assert not page.all("section")


def test_a_full_page_of_the_digits_stays_under_300_kB():
    assert len(r.render(example()).encode()) < 300_000


def test_the_page_asks_for_nothing_from_outside(page):
    links = [
        value
        for _, attributes in page.elements
        for name, value in attributes.items()
        if name in ("src", "href", "srcset", "action")
    ]
    assert len(links) > 50
    assert {link.split(",")[0].split(":")[0] for link in links if not link.startswith("#")} == {"data"}
    assert "default-src 'none'" in next(meta["content"] for meta in page.all("meta") if "http-equiv" in meta)


def test_the_policy_names_the_hash_of_the_one_script():
    text = r.render(r.Report("Hash"))
    script = re.search(r"<script>(.*?)</script>", text, re.S)[1]
    assert f"script-src 'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" in text


def test_headings_go_down_one_level_at_a_time(page):
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_every_reference_by_id_points_at_one_element(page):
    assert len(page.ids) == len(set(page.ids))
    for name in ("aria-labelledby", "aria-describedby"):
        wanted = {attributes[name] for _, attributes in page.elements if name in attributes}
        assert wanted
        assert wanted <= set(page.ids)
    assert {link["href"][1:] for link in page.all("a")} <= set(page.ids)


def test_tables_have_captions_and_every_heading_cell_says_its_direction(page):
    assert len(page.all("table")) == len(page.all("caption")) > 5
    assert {head.get("scope") for head in page.all("th")} == {"col", "row", "colgroup"}
    assert all(image.get("alt") for image in page.all("img"))


def test_what_needs_the_truth_is_marked_and_what_does_not_is_not():
    assert (
        "truth"
        not in r.render(r.Report("t", key_figures=[r.KeyFigure("estimate", r.Value(0.5))]))
        .split("</header>")[0]
        .split("<h1>")[1]
    )
    assert 'class="truth"' in r.render(
        r.Report("t", key_figures=[r.KeyFigure("accuracy", r.Value(0.5), needs_truth=True)])
    )
    text = Page(r.render(r.Report("t", results=results()))).text
    order = [text.index(name) for name in ("From complementary labels alone", "Against the truth", "Cost")]
    columns = [
        text.index(name)
        for name in ("Estimated accuracy,\xa0%", "SCEL", "Test accuracy,\xa0%", "Sharing efficiency,\xa0%", "Time, s")
    ]
    assert order == sorted(order)
    assert columns == sorted(columns)


def test_a_figure_that_was_not_measured_is_missing_and_not_zero():
    column = r.Column("accuracy")
    for nothing in (None, float("nan"), float("inf")):
        text = r.render(r.Report("t", results=r.Results([column], [r.Method("m", [r.Value(nothing, nothing)])])))
        assert "not measured" in text
        assert ">0.0<" not in text


def test_a_gap_in_a_series_is_a_gap_in_its_line_and_a_lone_point_is_a_dot():
    text = r.render(
        r.Report(
            "t", learning=[r.Curves("c", [1, 2, 3, 4], [r.Series("s", [0.1, 0.2, None, 0.4]), r.Series("z", [0] * 4)])]
        )
    )
    line, lone = re.search(r'class="line c0" d="([^"]*)"', text)[1], re.search(r'class="lone c0" d="([^"]*)"', text)[1]
    assert (line.count("M"), line.count("L")) == (1, 1)
    assert re.fullmatch(r"M1000 \S+h0", lone)
    assert "From epoch 1 to 4: s goes from 10.0\xa0% to 40.0\xa0%; z goes" in text


def test_curves_without_a_single_value_are_left_out():
    text = r.render(
        r.Report("t", learning=[r.Curves("c", [1, 2], [r.Series("s", [None, float("nan")])]), r.Curves("d", [], [])])
    )
    assert "Learning curves" not in text


def test_curves_are_drawn_where_their_values_are():
    text = r.render(
        r.Report(
            "t", learning=[r.Curves("c", [0, 5, 10], [r.Series("s", [0.0, 0.5, 1.0], [0, 0.4, 0.9], [0.1, 0.6, 1])])]
        )
    )
    assert 'class="line c0" d="M0 1000L500 500L1000 0"' in text
    assert 'class="band c0" d="M0 900L500 400L1000 0L1000 100L500 600L0 1000Z"' in text


def test_a_heat_map_shares_its_scale_with_the_others_and_says_what_it_cuts():
    small, large = (r.HeatMap(str(top), np.array([[top, 0.0]]), ["row"], ["a", "b"]) for top in (0.2, 0.4))
    text = r.render(r.Report("t", heat_maps=[small, large]))
    assert '<td style="--v:0.5">20</td>' in text
    assert '<td style="--v:1.0" class="deep">40</td>' in text
    names = [str(k) for k in range(150)]
    wide = r.render(r.Report("t", heat_maps=[r.HeatMap("wide", np.ones((150, 150)), names, names)]))
    assert "Shown: the first 100 of 150 rows and 100 of 150 columns." in wide
    assert wide.count("<td style") == 10_000


def test_the_map_counts_its_classes_and_its_mistakes():
    points = np.array([[0, 0], [1, 1], [2, 0], [np.nan, 0]])
    feature_map = r.FeatureMap(
        points, [0, 1, 1, 1], probability=[0.9, 0.8, None, 0.5], labels=[[1], [-1], [0], [0]], y_true=[0, 1, 0, 0]
    )
    text = r.render(r.Report("t", classes=["cat", "dog"], feature_map=feature_map))
    assert (
        "3 items in 2 predicted classes. The largest is dog with 2 items (67\xa0%). Of these, 1 are predicted otherwise"
        in text
    )
    data = json.loads(Page(text).data)["map"]
    assert data["labels"] == [[1], [], [0]]
    assert data["probability"] == [0.9, 0.8, None]
    assert data["x"] == [30, 500, 970]


def test_items_show_their_prediction_labels_and_the_least_mass():
    item = r.Item(
        "7", [1], probabilities=[0.2, 0.1, 0.7], augmented=[0.3, 0.6, 0.1], neighbors=[r.Item("8", [0])], y_true=0
    )
    text = r.render(r.Report("t", classes=["cat", "dog", "cow"], examples=[item], doubtful=[item]))
    assert "predicted <b><bdi>cow</bdi></b>, 70.0\xa0%" in text
    assert 'class="least">10</td>' in text
    words = " ".join(Page(text).text.split())
    assert "Nearest neighbours 8not cat" in words
    assert "cow 70.0 % cat 20.0 % 50.0 not dog" in words.replace("\xa0", " ")


def test_every_hostile_text_is_shown_and_none_becomes_markup():
    text = r.render(hostile())
    page = Page(text)
    assert len(page.all("script")) == 2
    assert not page.all("img")
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    assert page.text.count("window.hacked=1") > 30
    assert "{{7*7}}" in page.text
    assert "49" not in page.text
    assert not re.search("[<>&\u2028\u2029]", page.data)
    assert json.loads(page.data)["map"]["names"] == [HOSTILE] * 3


def test_a_name_that_is_no_valid_text_does_not_stop_the_report(tmp_path):
    broken = "photo-\udcff\x00.png"
    feature_map = r.FeatureMap(np.eye(2), [0, 1], names=[broken, broken])
    path = r.write(
        r.Report(broken, classes=[broken, "b"], doubtful=[r.Item(broken)], feature_map=feature_map),
        tmp_path / "page.html",
    )
    assert "photo-" in path.read_text("utf-8")


def test_the_page_is_written_whole_or_not_at_all(tmp_path):
    path = r.write(r.Report("first"), tmp_path / "new folder" / "page.html")
    assert path == tmp_path / "new folder" / "page.html"
    assert r.write(r.Report("the second title"), str(path)).read_text("utf-8").count("the second title") == 2
    with pytest.raises(
        InputError, match=r"new folder cannot be written \(.*irectory.*Give the path of a file in a folder you own."
    ):
        r.write(r.Report("third"), path.parent)
    with pytest.raises(InputError, match="cannot be written"):
        r.write(r.Report("third"), path / "below a file.html")
    assert [file.name for file in tmp_path.rglob("*")] == ["new folder", "page.html"]
    assert "the second title" in path.read_text("utf-8")


def test_images_become_small_pngs():
    rng = np.random.default_rng(0)
    for shape, size in (((8, 8), (8, 8)), ((8, 8, 1), (8, 8)), ((32, 32, 3), (32, 32)), ((400, 200, 3), (64, 128))):
        image = rng.integers(0, 256, shape, dtype=np.uint8)
        shown = Image.open(io.BytesIO(base64.b64decode(png_uri(image).removeprefix("data:image/png;base64,"))))
        assert shown.size == size
        if shape[0] <= 128:
            np.testing.assert_array_equal(np.asarray(shown), image.squeeze())
    for wrong in (np.zeros((8, 8)), np.zeros((3, 8, 8), np.uint8), np.zeros((0, 8), np.uint8)):
        with pytest.raises(InputError, match=r"an image must be uint8, .* channels last; got shape"):
            png_uri(wrong)


def test_the_projection_is_the_principal_components():
    x = digits()[0].astype(np.float64)
    found = r.project_2d(x)
    centred = x - x.mean(0)
    _, s, v = np.linalg.svd(centred, full_matrices=False)
    exact = centred @ v[:2].T
    exact *= np.sign((exact * found.points).sum(0))
    # float32: points reach some tens, of which the seventh digit is lost, and iteration loses another
    np.testing.assert_allclose(found.points, exact, atol=1e-3)
    np.testing.assert_allclose(found.explained, (s[:2] ** 2) / (s**2).sum(), rtol=1e-5)
    np.testing.assert_array_equal(found.points, r.project_2d(torch.from_numpy(x)).points)


def test_the_projection_takes_a_sample_of_many_rows_and_copes_with_few(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(300, 4, 4)).astype(np.float32))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    first, again, other = (r.project_2d(mapped, max_points=100, seed=seed) for seed in (0, 0, 1))
    assert first.points.shape == (100, 2)
    assert (np.diff(first.rows) > 0).all()
    np.testing.assert_array_equal(first.points, again.points)
    assert (first.rows != other.rows).any()
    for few in (np.ones((1, 5)), np.ones((4, 1)), np.arange(6.0)[:, None]):
        assert np.isfinite(r.project_2d(few).points).all()
    with pytest.raises(InputError, match="features must be finite"):
        r.project_2d(np.array([[np.nan, 1.0]]))
    with pytest.raises(InputError, match=r"features must be \(n, d\) with at least one row; got shape \(0, 3\)"):
        r.project_2d(np.ones((0, 3)))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: r.Results([r.Column("a")], [r.Method("m", [])]),
            "method 'm' must have one value for each of the 1 columns; got 0.",
        ),
        (
            lambda: r.Results([r.Column("a")], [], drawn=["b"]),
            "drawn must name columns of the results; got 'b', and the columns are a.",
        ),
        (
            lambda: r.Curves("c", [1, 2], [r.Series("s", [1])]),
            "series 's' of 'c' must have one value for each of the 2 x values; got 1.",
        ),
        (
            lambda: r.HeatMap("h", np.ones((2, 2)), ["a"], ["b", "c"]),
            "heat map 'h' has 1 row and 2 column names; got values (2, 2).",
        ),
        (
            lambda: r.FeatureMap(np.ones((2, 3)), [0, 0]),
            "points must be (n, 2); got shape (2, 3). For features use naysay.report.project_2d.",
        ),
        (lambda: r.FeatureMap(np.ones((2, 2)), [0]), "predicted must have one entry for each of the 2 points; got 1."),
    ],
)
def test_parts_that_do_not_fit_together_are_refused_in_a_sentence(make, sentence):
    with pytest.raises(InputError, match=re.escape(sentence)):
        make()


def test_numbers_are_written_for_people():
    assert show(0.9432, "%") == "94.3"
    assert show(-0.00001, "", 2) == "0.00"
    assert show(-1234.5, "", 0) == "\N{MINUS SIGN}1,234"
    assert show_value(r.Value(0.943, 0.012), "%") == "94.3 ± 1.2\xa0%"
    assert show_value(r.Value(2.5), "") == "2.5"
    assert show(None) == show(float("nan")) == "–"


@settings(derandomize=True, max_examples=200)
@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_ticks_are_few_round_and_inside(low, length):
    found = ticks(low, low + length)
    steps = np.diff(found)
    assert 2 <= len(found) <= 11
    # rounding to twelve decimals and the ends' own rounding
    assert found[0] >= low - 1e-6 * length - 1e-9
    assert found[-1] <= low + length * (1 + 1e-6) + 1e-9
    # 10, because a step of 0.001 between numbers of 30,000 may come out a rounding below it
    leading = steps[0] / 10 ** np.floor(np.log10(steps[0]))
    assert min(abs(leading - factor) for factor in (1, 2, 5, 10)) < 0.01


def test_many_methods_are_sorted_and_the_losers_folded_away():
    text = r.render(sixty())
    table, folded = text.split('id="results-more"')
    shown = re.findall(r'data-sort="(candidate \d+)"', table)
    # the chosen one first, then by loss, which falls with the number
    assert shown == [f"candidate {k}" for k in (20, 24, 23, 22, 21, 19, 18, 17)]
    assert len(re.findall(r'data-sort="candidate', folded)) == 17
    assert "17 more that were tried" in text


def test_an_interval_that_stands_alone_is_shown_and_sorted_by_its_middle():
    columns = [r.Column("accuracy")]
    methods = [r.Method("a", [r.Value(None, low=0.6, high=0.8)]), r.Method("b", [r.Value(0.5, low=0.4, high=0.6)])]
    text = r.render(r.Report("t", results=r.Results(columns, methods, drawn=["accuracy"])))
    assert 'data-sort="0.7"' in text
    assert "60.0 to 80.0" in text
    assert "50.0<" in text
    assert "[40.0, 60.0]" in text
    dots = text.split('class="rows-figure dots"')[1]
    assert dots.count('class="whisker') == 2
    assert dots.count('class="mark m0" style') == 1


def test_one_class_of_a_single_item_does_not_pale_a_large_map():
    text = r.render(sixty())
    assert "3.0\xa0% and more" in text
    assert "Not drawn: 1 rows in which nothing was measured." in text
    assert text.count("<td style") == 2 * 59 * 60
    assert len(set(re.findall(r"--v:([\d.]+)", text))) > 500


def test_sixty_classes_have_sixty_marks():
    from naysay.report.map import draw_map

    marks = {(cluster["colour"], cluster["shape"]) for cluster in draw_map(sixty().feature_map, ())["clusters"]}
    assert len(marks) == 60


def test_doubtful_items_come_with_their_values():
    assert "<bdi>petal length</bdi> <b>1.4</b>" in r.render(sixty())
    assert "farthest apart" not in r.render(example())
