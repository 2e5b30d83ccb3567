"""An audit as text, JSON and HTML: narrow, the same after a round trip, and harmless whatever the names are."""

import functools
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from naysay import labels, transition
from naysay.audit import Audit, audit, audit_page
from naysay.audit.content import content
from naysay.errors import InputError
from naysay.report.content import Content, Field, Part, Table, as_html

EVIL = ["<script>alert(1)</script>", 'a" onmouseover="x', "{{ 7 * 7 }}", "two\nlines\x1b[31m", "w" * 300, "&amp;"]


@functools.cache
def full():
    """An audit with every part in it, under names that come from a hostile file."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 6, 600)
    named = transition.sample(y, transition.uniform(6), 2, replace=True).numpy()
    named[3] = y[3]
    table = {
        "item": np.repeat([f"<b>{i}</b>" for i in range(600)], 2),
        "label": [EVIL[k] for k in named.reshape(-1)],
        "annotator": [f"<i>{a}</i>" for a in rng.integers(0, 40, 1200)],
        "options": [[EVIL[k], EVIL[(k + 1) % 6], EVIL[(k + 2) % 6]] for k in named.reshape(-1)],
    }
    for k in range(6):
        for name, value in (("item", "<b>7</b>"), ("label", EVIL[k]), ("annotator", "<i>0</i>"), ("options", EVIL)):
            table[name] = [*table[name], value]
    features = np.eye(6, dtype=np.float32)[y] + rng.normal(0, 0.1, (600, 6)).astype(np.float32)
    features[11] = features[12]
    return audit(table=table, features=features)


@functools.cache
def plain_names():
    """The same with short names, which no form has to cut."""
    plain = json.dumps(full().as_dict())
    for name, short in zip(EVIL, "abcdef", strict=True):
        plain = plain.replace(json.dumps(name), f'"{short}"')
    rows = json.loads(plain)
    rows["annotators"]["rows"] = rows["annotators"]["rows"][:20]
    return Audit.from_dict(rows)


class Tags(HTMLParser):
    """The tags of a page, checked to be closed in order, and its text."""

    VOID = frozenset({"meta", "br", "img", "link"})

    def __init__(self, page):
        super().__init__()
        self.open, self.seen, self.attributes, self.text = [], set(), set(), ""
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_the_audit_that_is_written_has_every_part():
    found = full()
    assert found.neighborhood is not None
    assert found.neighborhood.told
    assert found.annotators is not None
    assert found.shown is not None
    assert found.coverage.contradicting_items == ("<b>7</b>",)
    assert found.duplicates.copies == 1


def test_html_in_names_is_text():
    page = Tags(audit_page(full()))
    assert "script" not in page.seen
    assert not page.seen & {"b", "i"}
    assert "onmouseover" not in page.attributes
    assert "{{ 7 * 7 }}" in page.text
    assert "<script>alert(1)</script>" in page.text


def test_the_page_is_whole_and_needs_no_network():
    page = audit_page(full())
    assert page.startswith("<!doctype html>")
    assert {"title", "main", "h1", "section"} <= Tags(page).seen
    assert not {"src", "href"} & Tags(page).attributes
    assert "http" not in page
    assert full().as_html() in page


def test_the_section_is_one_element_without_script():
    section = full().as_html()
    assert section.startswith("<section")
    assert section.endswith("</section>")
    assert not Tags(section).seen & {"script", "html", "body", "link", "h1"}


@pytest.mark.parametrize("found", [full, lambda: audit(labels.from_indices([0, 1, 2] * 3, 3))], ids=["full", "least"])
def test_text_is_plain_and_at_most_100_columns(found):
    text = found().as_text()
    assert max(map(len, text.splitlines())) <= 100
    assert all(c.isprintable() or c == "\n" for c in text)
    assert "What to do" in text


def test_text_and_page_hold_the_figures_of_the_json():
    found, text, page = full(), full().as_text(), audit_page(full())
    for figure in (
        f"{found.coverage.labels:,} labels",
        f"{found.neighborhood.clear:,} have clear neighbours",
        f"{found.marginals.uniform.chi2:.1f}",
    ):
        assert figure in text
        assert figure in page


@pytest.mark.parametrize("found", [full, lambda: audit(labels.from_indices([0, 1, 2] * 3, 3))], ids=["full", "least"])
def test_json_comes_back_as_it_was(found):
    plain = found().as_dict()
    read = json.loads(json.dumps(plain, allow_nan=False))
    assert read == plain
    assert Audit.from_dict(read) == found()
    assert Audit.from_dict(read).as_text() == found().as_text()


def test_json_that_is_no_audit_gets_one_sentence():
    with pytest.raises(InputError, match=r"this is not an audit: classes: .* Run the audit again"):
        Audit.from_dict({"coverage": 3})


def test_many_annotators_and_classes_stay_readable():
    rng = np.random.default_rng(0)
    table = {"item": np.arange(3000), "label": rng.integers(0, 120, 3000), "annotator": np.arange(3000) % 400}
    found = audit(table=table)
    text, page = found.as_text(), found.as_html()
    assert "... and 380 more" in text
    assert "… and 300 more" in page
    assert "… and 20 more" in page
    assert max(map(len, text.splitlines())) <= 100
    assert len(found.as_dict()["annotators"]["rows"]) == 400


def said(found):
    """Every sentence and every written cell of an audit's content."""
    whole = content(found)
    yield whole.opening
    for part in (whole.to_do, *whole.parts):
        yield part.title
        yield from (advice.text for advice in part.advice)
        for one in part.says:
            if isinstance(one, str):
                yield one
            else:
                yield from (field.title for field in one.fields)
                yield from (cell for row in one.rows for cell in row if isinstance(cell, str))


@pytest.mark.parametrize("found", [plain_names, lambda: audit(labels.from_indices([0, 1, 2] * 3, 3))])
def test_the_terminal_and_the_page_say_the_same(found):
    text, page = found().as_text(), Tags(found().as_html()).text
    for sentence in said(found()):
        for word in sentence.split():
            assert word in text
        assert " ".join(sentence.split()) in " ".join(page.split())


def test_the_json_has_the_keys_that_run_folders_have():
    plain = full().as_dict()
    assert list(plain) == [
        *("classes", "coverage", "marginals", "annotators", "shown", "duplicates", "neighborhood"),
        *("not_told", "advice", "together"),
    ]
    assert list(plain["neighborhood"]) == [
        *("rows", "labelled", "neighbors", "clear", "told", "foresight", "noise", "noise_everywhere", "random"),
        *("bias", "transition", "class_shares", "errors", "shrinkage", "steps", "gain", "likeliest", "follows", "even"),
        *("annotators", "agreement", "beyond", "suspects"),
    ]


@pytest.mark.parametrize(("n_classes", "in_text", "in_page"), [(12, True, True), (13, False, True), (31, False, True)])
def test_a_matrix_that_is_too_wide_is_said_to_be(n_classes, in_text, in_page):
    y = np.arange(150 * n_classes) % n_classes
    comp = labels.from_indices(transition.sample(y, transition.uniform(n_classes), 3), n_classes)
    found = audit(comp, features=np.random.default_rng(0).normal(np.eye(n_classes)[y], 0.1))
    too_wide = f"{n_classes} columns are too wide for a"
    assert (too_wide in found.as_text()) is not in_text
    assert (too_wide in found.as_html()) is not in_page
    assert max(map(len, found.as_text().splitlines())) <= 100


def test_a_table_of_more_than_a_hundred_columns_is_not_drawn():
    table = Table("wide", [Field("", "name"), *(Field(str(k), "shade") for k in range(101))], [("a", *[0.1] * 101)])
    page = as_html(Content("t", "o", Part("p"), [Part("q", [table])]))
    assert "101 columns are too wide for a page" in page
    assert "<table" not in page


def test_shades_are_drawn_against_the_deepest_so_that_many_classes_show():
    table = Table(
        "T", [Field("", "name"), Field("a", "shade"), Field("b", "shade")], [("a", 0.0, 0.02), ("b", 0.01, 0.0)]
    )
    page = as_html(Content("t", "o", Part("p"), [Part("q", [table])]))
    assert re.findall(r"--p: ([\d.]+)", page) == ["0.000", "1.000", "0.500", "0.000"]


def test_no_class_is_said_to_be_a_negative_share_of_the_items():
    found = audit(labels.from_indices([0] * 30 + [1] * 31 + [2] * 12, 3))
    assert found.marginals.classes[0].implied_share < 0.2
    assert min(row.implied_share - 2 * row.implied_error for row in found.marginals.classes) < 0
    shares = [row[-1] for row in content(found).parts[1].says[0].rows]
    assert all(re.fullmatch(r"\d[\d.]* % \[\d[\d.]*, \d[\d.]*\]", share) for share in shares), shares


def test_wide_letters_keep_to_the_columns_of_a_terminal():
    from rich.cells import cell_len

    found = audit(table={"item": list("abc") * 3, "label": ["漢字" * 30, "b", "c"] * 3, "annotator": ["ｗ" * 90] * 9})
    assert max(map(cell_len, found.as_text().splitlines())) <= 100


def test_what_a_reader_sets_in_the_environment_puts_no_colour_into_the_text(monkeypatch):
    before = full().as_text()
    for name, value in (("FORCE_COLOR", "1"), ("COLUMNS", "40"), ("TERM", "xterm-256color"), ("JUPYTER_COLUMNS", "9")):
        monkeypatch.setenv(name, value)
    assert full().as_text() == before
