"""The report in real Chromium: drawn, silent, sorting, hovering, typing, on a phone and in the dark.

Needs Debian's packages chromium and chromium-driver; without them these tests are skipped, and say so.
"""

import base64
import io
import os
import shutil

import numpy as np
import pytest
from PIL import Image
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from test_audit_forms import full, plain_names
from test_report import HOSTILE, example, hostile, sixty

from naysay import report
from naysay.audit import audit_page

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="no Chromium here: apt-get install chromium chromium-driver"
)

# root may not use Chromium's sandbox; the rest keeps Chromium itself off the network
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-quic --no-first-run "
    "--disable-background-networking "
    "--disable-component-update --disable-sync --force-color-profile=srgb --window-size=1360,900"
)
NOT_FINITE = (
    "return [...document.querySelectorAll('svg *')].filter(e => [...e.attributes].some(a => "
    "/NaN|undefined|Infinity/.test(a.value))).length"
)
OUTSIDE = """
const clipped = (e) => e && e !== document.body
  && (getComputedStyle(e).overflowX !== 'visible' || clipped(e.parentElement));
return [...document.querySelectorAll('body *')].filter((e) => {
  const box = e.getBoundingClientRect();
  return box.width && (box.right > innerWidth + 1 || box.left < -1) && !clipped(e.parentElement);
}).map((e) => e.outerHTML.slice(0, 120))"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages of a report")  # a path with spaces
    return {
        "example": report.write(example(), folder / "example.html"),
        "hostile": report.write(hostile(), folder / "hostile.html"),
        "sixty": report.write(sixty(), folder / "sixty.html"),
        "audit": _written(audit_page(plain_names()), folder / "audit.html"),
        "hostile audit": _written(audit_page(full()), folder / "hostile audit.html"),
    }


def _written(text, path):
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS.split(), f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER, log_output=os.devnull))
    yield driver
    driver.quit()


@pytest.fixture
def look(chromium, pages):
    """Open a page on a screen; afterwards the console must be empty and nothing but the file itself asked for."""

    def opened(name="example", width=1360, height=900, theme="light", phone=False):
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}
        chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        chromium.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]}
        )
        chromium.get(pages[name].as_uri())
        return chromium

    chromium.get("about:blank")
    chromium.get_log("browser"), chromium.get_log("performance")
    yield opened
    assert chromium.get_log("browser") == []
    asked = [
        entry["message"]
        for entry in chromium.get_log("performance")
        if '"Network.requestWillBeSent"' in entry["message"]
    ]
    assert asked
    assert [message for message in asked if '"url":"file:' not in message and '"url":"data:' not in message] == []


def find(driver, selector):
    return driver.find_element(By.CSS_SELECTOR, selector)


def column(driver, table, number):
    return driver.execute_script(
        f"return [...document.querySelector('{table}').tBodies[0].rows].map(r => r.cells[{number}].dataset.sort)"
    )


def tip(driver):
    return driver.execute_script("const tip = document.getElementById('tip'); return tip.hidden ? null : tip.innerText")


def hover(driver, element, x=0, y=0):
    """The pointer to an element's middle, or x and y pixels from it, once the page has come to rest there."""
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    ActionChains(driver).move_to_element_with_offset(element, round(x), round(y)).perform()


def pixels(driver, selector):
    return np.asarray(
        Image.open(io.BytesIO(base64.b64decode(find(driver, selector).screenshot_as_base64))).convert("RGB")
    ).astype(int)


def test_all_figures_are_drawn(look):
    driver = look()
    count = lambda selector: len(driver.find_elements(By.CSS_SELECTOR, selector))  # noqa: E731
    assert count(".chart .area path.line") == 5 + 2 + 3 + 2
    assert count(".chart .area path.band") == 7
    assert count(".heat-map td[style]") == 200
    assert count(".field polyline.points") == 10
    assert count(".dots .track .mark") == 12 + 20
    assert count(".bars .track .bar") == 2
    assert count(".example") == 6
    assert driver.execute_script(NOT_FINITE) == 0
    assert driver.execute_script("return [...document.images].every(image => image.complete && image.naturalWidth > 0)")
    for line in driver.find_elements(By.CSS_SELECTOR, ".chart .area path.line"):
        assert line.size["width"] > 300
        assert line.size["height"] > 20


def test_the_map_shows_each_class_in_its_colour(look):
    driver = look()
    picture = pixels(driver, ".field").reshape(-1, 3)
    for k in range(10):
        code = driver.execute_script(
            f"return getComputedStyle(document.documentElement).getPropertyValue('--c{k}')"
        ).strip()
        # marks let 22 % of the white paper through
        mark = 0.78 * np.array([int(code[at : at + 2], 16) for at in (1, 3, 5)]) + 0.22 * 255
        assert (np.abs(picture - mark).max(1) <= 4).sum() > 200, k


def test_the_table_sorts_on_click_and_on_enter(look):
    driver = look()
    given = column(driver, "#results-table", 1)
    head = find(driver, "#results-table button[data-column='1']")
    head.click()
    assert column(driver, "#results-table", 1) == sorted(given, key=float, reverse=True)
    assert find(driver, "#results-table th[aria-sort='descending']").text.startswith("Estimated accuracy")
    head.send_keys(Keys.ENTER)
    assert column(driver, "#results-table", 1) == sorted(given, key=float)
    assert len(driver.find_elements(By.CSS_SELECTOR, "#results-table th[aria-sort='ascending']")) == 1
    find(driver, "#results-table button[data-column='0']").send_keys(Keys.SPACE)
    assert column(driver, "#results-table", 0)[0] == "kNN decoding"
    assert len(driver.find_elements(By.CSS_SELECTOR, "#results-table th[aria-sort='none']")) == 5


def test_what_is_missing_sorts_last_in_both_directions(look):
    driver = look()
    for _ in range(2):
        find(driver, "#results-table button[data-column='2']").click()
        values = column(driver, "#results-table", 2)
        assert values[-1] == ""
        assert "" not in values[:-1]


def test_the_doubtful_items_sort_by_number_not_by_letter(look):
    driver = look()
    find(driver, "#doubtful-table button[data-column='0']").click()
    names = column(driver, "#doubtful-table", 0)
    assert names == sorted(names, key=int)
    find(driver, "#doubtful-table button[data-column='5']").click()
    truths = column(driver, "#doubtful-table", 5)
    assert truths == sorted(truths, key=int)


def test_hovering_over_a_chart_tells_its_values(look):
    driver = look()
    plot = find(driver, "#learning-0 .area")
    hover(driver, plot)
    said = tip(driver).split("\n")
    assert said[0] in ("epoch 50", "epoch 51")
    assert said[1:10:2] == ["none, %", "RSS, %", "RMS, %", "DSS, %", "DMS, %"]
    assert 80 < float(said[2]) < 100
    assert len(driver.find_elements(By.CSS_SELECTOR, "#learning-0 .dot:not([hidden])")) == 5
    hover(driver, find(driver, "h1"))
    assert tip(driver) is None


def test_a_chart_is_read_with_arrow_keys(look):
    driver = look()
    plot = find(driver, "#sharing-1 .plot")
    plot.send_keys(Keys.END)
    assert tip(driver).startswith("epoch 100\nnone, %")
    plot.send_keys(Keys.ARROW_LEFT)
    assert tip(driver).startswith("epoch 99\n")
    assert find(driver, "#said").get_attribute("textContent").startswith("epoch 99: none, % 8")
    plot.send_keys(Keys.ESCAPE)
    assert tip(driver) is None


def test_hovering_over_the_map_tells_the_item(look):
    driver = look()
    field = find(driver, ".field")
    script = """const m = JSON.parse(document.getElementById('data').textContent).map;
        const b = arguments[0].getBoundingClientRect();
      return [m.x[7] / 1000 * b.width - b.width / 2, m.y[7] / 1000 * b.width - b.height / 2, m.x[7], m.y[7]]"""
    x, y, *place = driver.execute_script(script, field)
    hover(driver, field, x, y)
    said = tip(driver).split("\n")
    assert said[0].startswith("Item ")
    assert said[1::2] == ["predicted", "probability", "labelled", "truth"]
    assert said[6].startswith("not ")
    row = int(said[0].removeprefix("Item "))
    data = driver.execute_script("return JSON.parse(document.getElementById('data').textContent).map")
    # another item may lie under the pointer, but none farther than the rounding to pixels
    assert np.hypot(data["x"][row] - place[0], data["y"][row] - place[1]) <= 3
    assert said[2] == str(data["predicted"][row])


def test_the_map_is_walked_with_arrow_keys_and_classes_come_forward(look):
    driver = look()
    field = find(driver, ".field")
    field.send_keys(Keys.ARROW_RIGHT)
    first = tip(driver)
    field.send_keys(Keys.ARROW_RIGHT)
    assert first.startswith("Item ")
    assert tip(driver) != first
    find(driver, ".map button[data-class='3']").send_keys(Keys.ENTER)
    assert len(driver.find_elements(By.CSS_SELECTOR, ".points.faded")) == 9
    field.send_keys(Keys.ARROW_LEFT)
    assert tip(driver).split("\n")[2] == "3"
    find(driver, ".map button[data-class='3']").click()
    assert not driver.find_elements(By.CSS_SELECTOR, ".faded")


def test_hovering_over_a_heat_map_and_over_dots_tells_their_values(look):
    driver = look()
    cell = find(driver, ".heat-map tbody tr:nth-child(3) td:nth-of-type(4)")
    hover(driver, cell)
    assert tip(driver).split("\n") == [f"{cell.text} %", "true class", "2", "not", "3"]
    hover(driver, find(driver, ".track[data-tip]"))
    assert tip(driver).split("\n") == [
        "SCL-NL",
        "Estimated accuracy",
        "81.2 ± 6.1\xa0%",
        "Test accuracy",
        "86.2 ± 1.1\xa0%",
    ]


@pytest.mark.parametrize("name", ["example", "hostile", "sixty", "hostile audit"])
@pytest.mark.parametrize("width", [320, 375, 768, 1360])
def test_the_page_never_scrolls_sideways(look, name, width):
    driver = look(name, width, 812, phone=width < 500)
    shown, wide, needed = driver.execute_script(
        "const e = document.documentElement; return [innerWidth, e.clientWidth, e.scrollWidth]"
    )
    assert shown == width
    assert needed == wide
    assert driver.execute_script(OUTSIDE) == []


@pytest.mark.parametrize("width", [320, 400])
def test_the_tables_of_an_audit_fit_a_phone_without_being_moved(look, width):
    driver = look("audit", width, 812, phone=True)
    moved = "return [...document.querySelectorAll('.wide')].filter((e) => e.scrollWidth > e.clientWidth + 1)"
    assert driver.execute_script(f"{moved}.map((e) => e.getAttribute('aria-label'))") == []
    assert len(driver.find_elements(By.CSS_SELECTOR, ".wide table")) >= 4


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_faint_cell_of_a_heat_map_is_near_to_the_paper_in_both_themes(look, theme):
    driver = look(theme=theme)
    cell = ".heat-map tbody td"
    found = []
    for depth in (0, 1):
        driver.execute_script(
            f"const e = document.querySelector('{cell}'); e.style.setProperty('--v', {depth}); e.textContent = ''"
        )
        found.append(np.median(pixels(driver, cell).reshape(-1, 3), axis=0))
    paper = pixels(driver, ".heat-map figcaption")[-1, -1]
    faint, deep = (np.abs(colour - paper).mean() / 255 for colour in found)
    assert faint < 0.1 < 0.3 < deep


def test_the_headings_of_sixty_columns_do_not_cover_each_other(look):
    driver = look("sixty")
    wide = "return [...document.querySelectorAll('.heat-map thead th')].slice(0, 60).map((e) => e.clientWidth)"
    letters = "return parseFloat(getComputedStyle(document.querySelector('.heat-map thead th')).fontSize)"
    assert min(driver.execute_script(wide)) >= driver.execute_script(letters)


def test_a_finger_on_a_phone_gets_a_tooltip_inside_the_screen(look):
    driver = look(width=375, height=812, phone=True)
    plot = find(driver, "#learning-0 .area")
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", plot)
    left, top, width, height = driver.execute_script(
        "const b = arguments[0].getBoundingClientRect(); return [b.x, b.y, b.width, b.height]", plot
    )
    press = """const [target, clientX, clientY] = arguments;
        target.dispatchEvent(new PointerEvent('pointerdown', {bubbles: true, clientX, clientY}))"""
    for share in (0, 0.5, 1):
        driver.execute_script(press, plot, left + share * width, top + height / 2)
        box = driver.execute_script(
            "const b = document.getElementById('tip').getBoundingClientRect(); return [b.left, b.right]"
        )
        assert box[0] >= 0
        assert box[1] <= 375


@pytest.mark.parametrize(("theme", "bright"), [("light", True), ("dark", False)])
def test_the_theme_follows_the_reader(look, theme, bright):
    driver = look(theme=theme)
    picture = pixels(driver, "header.page").mean(2)
    assert (np.median(picture) > 128) == bright
    assert (picture.max() > 220) & (picture.min() < 60)
    shown = driver.execute_script("return getComputedStyle(document.querySelector('path.line.c0')).stroke")
    assert shown == ("rgb(73, 102, 206)" if bright else "rgb(61, 157, 245)")


def test_hostile_names_are_shown_and_do_nothing(look):
    driver = look("hostile")
    assert driver.find_element(By.TAG_NAME, "h1").text.startswith("</script><script>window.hacked=1</script><img")
    plot = find(driver, ".plot")
    plot.send_keys(Keys.END)
    assert HOSTILE[:40] in tip(driver)
    find(driver, ".field").send_keys(Keys.ARROW_RIGHT)
    assert HOSTILE[:40] in tip(driver)
    for figure in (".heat-map td[style]", ".track[data-tip]"):
        hover(driver, find(driver, figure))
        assert HOSTILE[:40] in tip(driver)
    find(driver, "#results-table button").click()
    assert driver.execute_script(
        "return window.hacked === undefined && document.images.length === 0 && document.scripts.length === 2"
    )


def test_the_policy_stops_scripts_that_an_audit_would_bring(chromium, tmp_path):
    audit = (
        "<h3>Counts</h3><img src=x onerror='window.hacked=1'><script>window.hacked=2</script>"
        "<p onclick='window.hacked=3'>press</p>"
    )
    chromium.get(report.write(report.Report("t", audit=audit), tmp_path / "audit.html").as_uri())
    find(chromium, "#audit p").click()
    assert chromium.execute_script("return window.hacked === undefined")
    assert len(chromium.get_log("browser")) >= 3  # the refusals


def test_a_keyboard_reaches_everything_and_shows_where_it_is(look):
    driver = look()
    body = driver.find_element(By.TAG_NAME, "body")
    body.send_keys(Keys.TAB)
    assert driver.switch_to.active_element.text == "Skip to the content"
    assert driver.switch_to.active_element.location["y"] >= 0
    reached, unmarked = set(), []
    for _ in range(70):
        ActionChains(driver).send_keys(Keys.TAB).perform()
        name, outline = driver.execute_script(
            "const e = document.activeElement; return [e.tagName + '.' + e.className, getComputedStyle(e).outlineStyle]"
        )
        if name.startswith("BODY"):
            break
        reached.add(name)
        unmarked += [name] * (outline == "none")
    assert {"A.", "BUTTON.", "DIV.plot", "DIV.field", "DIV.scroll", "SUMMARY."} <= reached
    assert unmarked == []


def test_the_page_prints_in_light_colours_even_in_the_dark(look):
    driver = look(theme="dark")
    driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"media": "print", "features": [{"name": "prefers-color-scheme", "value": "dark"}]},
    )
    try:
        assert driver.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert driver.execute_script("return getComputedStyle(document.querySelector('nav')).display") == "none"
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_the_screen_readers_tree_names_every_figure(look):
    driver = look()
    nodes = driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    named = {}
    for node in nodes:
        if not node.get("ignored"):
            named.setdefault(node["role"]["value"], []).append(node.get("name", {}).get("value", ""))
    assert named["banner"] and named["navigation"] == ["Contents"] and len(named["main"]) == 1 and named["contentinfo"]  # noqa: PT018
    assert len(named["figure"]) == 4 + 2 + 1 + 1 + 2
    assert all(named["figure"])
    assert all(named["application"])
    assert all(named["table"])
    assert all(named["button"])
    assert all(named["image"])
