"""Reports in a real browser: nothing is loaded, nothing runs that should not, and each interaction does what it says.

The pages are those that the Rust tests write (``MERCER_REPORTS``) and that of ``mercer demo``. The browser is Chromium,
from ``MERCER_BROWSER`` or where Debian installs it. Without one, these tests are skipped, and ``cargo xtask test`` says so.
"""

import csv
import io
import os
import shutil
import subprocess
from pathlib import Path

import pytest

playwright = pytest.importorskip("playwright.sync_api")

BROWSER = os.environ.get("MERCER_BROWSER") or shutil.which("chromium") or shutil.which("chromium-browser")
REPORTS = Path(os.environ.get("MERCER_REPORTS", "target/tmp/reports"))
BINARY = os.environ.get("MERCER_BINARY", "target/debug/mercer")
SHOTS = os.environ.get("MERCER_SCREENSHOTS")

pytestmark = pytest.mark.skipif(BROWSER is None, reason="there is no browser: reports were not tested")

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]


@pytest.fixture(scope="module")
def chromium():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, headless=True, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    done = subprocess.run([BINARY, "demo", "--quiet"], cwd=folder, capture_output=True, text=True, check=True)
    sentences = done.stdout.split("\n\n")[1].splitlines()
    assert len(sentences) == 5
    return folder / "mercer-demo" / "report.html", sentences


class Opened:
    """A page that was opened from a file without a network, and everything it complained about or asked for."""

    def __init__(self, browser, path, **options):
        self.context = browser.new_context(offline=True, accept_downloads=True, **options)
        self.page = self.context.new_page()
        self.complaints, self.requests = [], []
        self.page.on("console", lambda message: self.complaints.append(message.text) if message.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(Path(path).resolve().as_uri(), wait_until="load")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()

    def clean(self):
        assert self.complaints == []
        elsewhere = [url for url in self.requests if not url.startswith(("file:", "data:", "blob:"))]
        assert elsewhere == [] and len([url for url in self.requests if url.startswith("file:")]) == 1


def pages(demo):
    return {"demo": demo[0], "every": REPORTS / "every.html"}


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_and_are_accessible(chromium, demo, width, scheme):
    from axe_playwright_python.sync_playwright import Axe

    for name, path in pages(demo).items():
        with Opened(chromium, path, viewport={"width": width, "height": 800}, color_scheme=scheme, reduced_motion="reduce") as opened:
            page = opened.page
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "no horizontal scrolling"
            if name == "every" and width != (1280 if scheme == "light" else 390):
                continue
            found = Axe().run(page, options={"resultTypes": ["violations"]})
            serious = [v for v in found.response["violations"] if v["impact"] in ("serious", "critical")]
            assert serious == [], [(v["id"], v["nodes"][0]["html"][:200], v["nodes"][0].get("failureSummary")) for v in serious]
            if SHOTS:
                page.screenshot(path=f"{SHOTS}/{name}-{width}-{scheme}.png")
                page.screenshot(path=f"{SHOTS}/{name}-{width}-{scheme}-full.png", full_page=True)
            opened.clean()


def test_the_first_screen_says_what_was_found(chromium, demo):
    path, sentences = demo
    with Opened(chromium, path, viewport={"width": 1280, "height": 800}) as opened:
        for sentence in sentences:
            box = opened.page.get_by_text(sentence, exact=True).first.bounding_box()
            assert box["y"] + box["height"] <= 800, sentence


def test_without_script_everything_is_there(chromium, demo):
    for path in pages(demo).values():
        with Opened(chromium, path, java_script_enabled=False) as opened:
            page = opened.page
            figures = page.locator("figure")
            assert figures.count() >= 10
            for at in range(figures.count()):
                box = figures.nth(at).locator("svg").last.bounding_box()
                assert box and box["width"] > 100 and box["height"] > 50
            assert page.locator("section.job table").first.is_visible() and page.locator(".browser table").first.is_visible()
            assert page.locator(".slider").first.is_hidden()


def test_values_under_the_pointer_and_linked_series(chromium, demo):
    with Opened(chromium, demo[0], viewport={"width": 1280, "height": 900}) as opened:
        page = opened.page
        figure = page.locator("#s0-course .panel svg[role=img]").first
        figure.scroll_into_view_if_needed()
        # A point of the data, where the drawing has it.
        spot = figure.evaluate("""svg => {
            const data = JSON.parse(svg.querySelector('metadata').textContent);
            const own = data.series[0], at = 4, [left, top, width, height] = data.area;
            const place = (axis, x) => ((axis.scale === 'log' ? Math.log10(x) : x) - axis.ends[0]) / (axis.ends[1] - axis.ends[0]);
            const point = new DOMPoint(left + place(data.x, own.x[at]) * width, top + (1 - place(data.y, own.y[at])) * height)
                .matrixTransform(svg.getScreenCTM());
            return { x: point.x, y: point.y, epoch: own.x[at], loss: own.y[at], name: own.name };
        }""")
        page.mouse.move(spot["x"], spot["y"])
        tip = page.locator(".tip")
        assert tip.is_visible() and spot["name"] in tip.inner_text() and f"epoch: {spot['epoch']}" in tip.inner_text()
        assert "loss: " in tip.inner_text()
        # A click on a name of the legend fades the others, in every figure with that name.
        page.locator("#s0-course text", has_text="training").first.click()
        faded = page.locator("#s0-course [data-series].fade")
        assert faded.count() == 2
        page.locator("#s0-course text", has_text="training").first.click()
        assert faded.count() == 0
        opened.clean()


def test_series_and_values_without_a_pointer(chromium, demo):
    """The list of names does what a click on the legend does, in all figures; the values of a figure are a table."""
    with Opened(chromium, demo[0]) as opened:
        page = opened.page
        panel = page.locator("#s0-course .panel").first
        select = panel.get_by_role("combobox", name="one of the series")
        select.focus()
        select.press("ArrowDown")
        assert select.input_value() == "training"
        faded = page.locator("#s0-course [data-series].fade")
        assert faded.count() == 2
        # The list beside the other panel shows the same choice.
        assert page.locator("#s0-course .panel").nth(1).get_by_role("combobox").input_value() == "training"
        page.locator("#s0-course text", has_text="unseen").first.click()
        assert select.input_value() == "unseen" and faded.count() == 2
        select.select_option("")
        assert faded.count() == 0
        button = panel.get_by_role("button", name="as a table")
        assert button.get_attribute("aria-expanded") == "false"
        button.press("Enter")
        assert button.get_attribute("aria-expanded") == "true"
        table = panel.locator("table")
        assert table.locator("th").all_inner_texts() == ["series", "epoch", "loss"] and table.locator("tbody tr").count() == 60
        head = table.locator("th", has_text="loss").get_by_role("button")
        head.press("Enter")
        losses = [float(x) for x in table.locator("tbody tr td:nth-child(3)").all_inner_texts()]
        assert losses == sorted(losses)
        button.press("Enter")
        assert panel.locator("table").count() == 0
        opened.clean()


def test_the_keyboard_reaches_everything(chromium, demo):
    """Tab goes through all that can be used, every stop has a name and is seen to have the focus."""
    with Opened(chromium, demo[0], viewport={"width": 1280, "height": 900}) as opened:
        page = opened.page
        stops, kinds = [], set()
        for _ in range(400):
            page.keyboard.press("Tab")
            stop = page.evaluate("""() => {
                const own = document.activeElement;
                if (own === document.body) return null;
                const named = own.getAttribute('aria-label') || own.textContent.trim() || own.closest('label')?.textContent;
                const style = getComputedStyle(own);
                return { tag: own.tagName, role: own.getAttribute('role'), named: !!named, type: own.type || '',
                         seen: own.matches(':focus-visible') && (style.outlineStyle !== 'none' || own.tagName === 'SELECT') };
            }""")
            if stop is None:
                break
            stops.append(stop)
            kinds.add((stop["tag"], stop["role"]))
        assert len(stops) > 60 and all(stop["named"] and stop["seen"] for stop in stops), [s for s in stops if not (s["named"] and s["seen"])][:3]
        for kind in [("A", None), ("BUTTON", None), ("SELECT", None), ("DIV", "listbox"), ("DIV", "region"), ("SUMMARY", None)]:
            assert kind in kinds, kind
        assert {"search", "range"} <= {stop["type"] for stop in stops} or len(stops) == 400


def test_a_point_of_a_figure_picks_its_sample(chromium, demo):
    """Linked selection: a click on a point shows its sample, and rings mark the sample in every figure that has it."""
    with Opened(chromium, demo[0], viewport={"width": 1280, "height": 900}) as opened:
        page = opened.page
        browser = page.locator(".browser").nth(1)
        figure = page.locator("figure[id$=faithfulness] svg[role=img]").first
        figure.scroll_into_view_if_needed()
        spot = figure.evaluate("""svg => {
            const data = JSON.parse(svg.querySelector('metadata').textContent), [left, top, width, height] = data.area;
            const { samples } = JSON.parse(document.querySelectorAll('.browser script')[1].textContent);
            const at = samples.findIndex((sample, at) => at > 4);
            const [x, y] = samples[at].marks.find(([figure]) => figure.endsWith('faithfulness'))[1];
            const place = (axis, x) => (x - axis.ends[0]) / (axis.ends[1] - axis.ends[0]);
            const point = new DOMPoint(left + place(data.x, x) * width, top + (1 - place(data.y, y)) * height)
                .matrixTransform(svg.getScreenCTM());
            return { x: point.x, y: point.y, name: samples[at].name };
        }""")
        page.mouse.click(spot["x"], spot["y"])
        assert browser.locator("[aria-selected=true]").count() == 1
        assert page.locator("figure[id$=faithfulness] .ring").count() == 1
        assert page.locator("figure[id$=functions] .ring").count() == 1
        detail = browser.locator(".detail").inner_text()
        assert detail.startswith("Sample ")
        opened.clean()


def test_tables_are_sorted_and_filtered(chromium, demo):
    with Opened(chromium, demo[0]) as opened:
        page = opened.page
        table = page.locator("section.job .table", has=page.get_by_text("history", exact=True)).first
        head = table.locator("th", has_text="epoch").first
        column = table.locator("tbody tr td:first-child")
        head.locator("button").click()
        head.locator("button").click()
        assert head.get_attribute("aria-sort") == "descending"
        assert [int(x) for x in column.all_inner_texts()] == list(range(30, 0, -1))
        search = table.locator("xpath=preceding-sibling::label[1]").locator("input")
        search.fill("no such row")
        assert table.locator("tbody tr:visible").count() == 0
        search.fill("")
        assert table.locator("tbody tr:visible").count() == 30
        opened.clean()


def test_sliders_turn_pages(chromium, demo):
    with Opened(chromium, demo[0]) as opened:
        page = opened.page
        for figure in page.locator("figure:has(.slider)").all():
            slider, output = figure.locator("input[type=range]"), figure.locator("output")
            last = int(slider.get_attribute("max"))
            assert last >= 1
            before, shown = output.inner_text(), figure.locator(".panels:visible")
            slider.focus()
            slider.press("Home")
            assert output.inner_text() != before and shown.count() == 1
            assert figure.locator(".panels").first.is_visible()
            slider.press("End")
            assert output.inner_text() == before and figure.locator(".panels").nth(last).is_visible()
        assert page.locator("figure:has(.slider)").count() >= 4
        opened.clean()


def test_samples_can_be_picked(chromium, demo):
    with Opened(chromium, demo[0], viewport={"width": 1280, "height": 900}) as opened:
        page = opened.page
        browser = page.locator(".browser").nth(1)
        assert "Test samples" in browser.locator("h2").inner_text()
        detail, options = browser.locator(".detail"), browser.locator("[role=option]")
        assert 4 < options.count() <= 100
        options.nth(3).click()
        name = options.nth(3).inner_text().strip()
        assert f"Sample {name}" in detail.inner_text()
        for words in ["Training samples that matter most", "Attribution by class", "Probability", "Eigenfunctions", "label"]:
            assert words.lower() in detail.inner_text().lower(), words
        assert detail.locator("img").first.evaluate("image => image.complete && image.naturalWidth > 0")
        # The same sample in two figures.
        assert page.locator("figure[id$=faithfulness] .ring").count() == 1
        assert page.locator("figure[id$=functions] .ring").count() == 1
        browser.locator("[role=listbox]").focus()
        page.keyboard.press("ArrowDown")
        assert f"Sample {options.nth(4).inner_text().strip()}" in detail.inner_text()
        browser.locator("select").select_option("wrong")
        assert 0 < browser.locator("[role=option]:visible").count() < options.count()
        opened.clean()


def test_points_in_space_can_be_turned(chromium, demo):
    with Opened(chromium, demo[0], viewport={"width": 1280, "height": 900}) as opened:
        page = opened.page
        svg = page.locator("svg.turn").first
        svg.scroll_into_view_if_needed()
        place = "svg => [...svg.querySelectorAll('circle[data-series]')].slice(0, 50).map(dot => dot.getAttribute('cx')).join()"
        before = svg.evaluate(place)
        box = svg.bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] / 2 + 80, box["y"] + box["height"] / 2 + 10)
        page.mouse.up()
        turned = svg.evaluate(place)
        assert turned != before
        svg.focus()
        page.keyboard.press("ArrowLeft")
        assert svg.evaluate(place) != turned
        opened.clean()


def test_figures_are_saved(chromium, demo, tmp_path):
    with Opened(chromium, demo[0]) as opened:
        page = opened.page
        panel = page.locator("#s0-course .panel").first
        with page.expect_download() as download:
            panel.get_by_role("button", name="as SVG").click()
        download.value.save_as(tmp_path / "course.svg")
        text = (tmp_path / "course.svg").read_text()
        assert text.startswith("<svg") and "var(" not in text and 'fill="#fff"' in text
        with page.expect_download() as download:
            panel.get_by_role("button", name="as CSV").click()
        download.value.save_as(tmp_path / "course.csv")
        rows = list(csv.reader(io.StringIO((tmp_path / "course.csv").read_text())))
        assert rows[0] == ["series", "epoch", "loss"] and len(rows) == 61
        assert {row[0] for row in rows[1:]} == {"training", "unseen"}
        assert page.locator(".panel").count() == page.get_by_role("button", name="as SVG", include_hidden=True).count()
        opened.clean()
    with Opened(chromium, (tmp_path / "course.svg")) as opened:
        assert opened.page.locator("circle, path").count() > 1 and opened.complaints == []


def test_themes(chromium, demo):
    with Opened(chromium, demo[0], color_scheme="light") as opened:
        page = opened.page
        ground = "getComputedStyle(document.body).backgroundColor"
        light = page.evaluate(ground)
        button = page.locator("button.theme")
        button.click()
        assert page.evaluate(ground) == light
        button.click()
        assert page.evaluate(ground) != light
        page.emulate_media(media="print")
        assert page.evaluate(ground) == "rgb(255, 255, 255)" and page.locator(".tools").first.is_hidden()
        # All findings and samples are on paper, and folded again on the screen.
        folded = "[...document.querySelectorAll('#findings details, .browser .all')].map(own => own.open)"
        assert not any(page.evaluate(folded))
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert all(page.evaluate(folded)) and len(page.evaluate(folded)) == 3
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert not any(page.evaluate(folded))
        assert len(page.pdf()) > 50_000
        opened.clean()
    # What the reader chose is kept while it can be; the system's choice is followed otherwise.
    with Opened(chromium, demo[0], color_scheme="dark") as opened:
        assert opened.page.evaluate(ground) != light
        button = opened.page.locator("button.theme")
        button.click()
        assert opened.page.evaluate(ground) == light and "light" in button.inner_text()
        opened.clean()


def test_hostile_names_do_nothing(chromium):
    paths = sorted(REPORTS.glob("hostile-*.html"))
    names = Path("crates/mercer-cli/tests/fixtures/hostile-names.txt").read_text().splitlines()
    assert len(paths) >= 50 and len(names) == len(paths)
    with Opened(chromium, paths[0]) as opened:
        for path, name in zip(paths, names):
            page = opened.page
            opened.requests.clear()
            page.goto(path.resolve().as_uri(), wait_until="load")
            assert page.evaluate("window.hit") is None, path
            assert page.evaluate("document.querySelectorAll('main iframe, main object, main embed, main form, main a[href^=javascript]').length") == 0
            shown = page.locator("#findings").inner_text()
            assert name.strip() in shown, (path, name)
            for option in page.locator("[role=option]").all()[:2]:
                option.click()
            assert page.evaluate("window.hit") is None
            assert name.strip() in page.locator(".detail").first.text_content()
            opened.clean()


def test_names_of_any_length_fit(chromium):
    path = REPORTS / "long.html"
    assert path.stat().st_size <= 2_000_000
    with Opened(chromium, path, viewport={"width": 390, "height": 800}) as opened:
        page = opened.page
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        whole = page.locator("span[title]").evaluate_all("all => all.map(own => own.title)")
        assert len(whole) > 10 and max(map(len, whole)) <= 2001
        assert any(title.startswith("a name & <more> of any length of any") for title in whole)
        # Names in figures are cut as well.
        texts = page.locator("svg[role=img] text", has_text="…")
        assert texts.count() > 0 and max(map(len, texts.all_text_contents())) < 200
        opened.clean()


def test_texts_can_be_read(chromium, tmp_path):
    """A test text beside the training texts that matter for it."""
    texts = Path("crates/mercer/tests/fixtures/texts").resolve()
    rows = "".join("the cat sat,good\n" if row % 2 == 0 else "a dog on mat,bad\n" for row in range(12))
    (tmp_path / "many.csv").write_text(f"text,mood\n{rows}")
    (tmp_path / "new.csv").write_text("text,mood\n\"the cat sat on the mat <img src=x>\",good\na dog,bad\n")
    data = ["--data", "many.csv:text", "--labels", "many.csv:mood"]

    def run(*words):
        subprocess.run([Path(BINARY).resolve(), *map(str, words), "-q"], cwd=tmp_path, check=True, capture_output=True)

    run("train", "--net", texts / "embedder.onnx", "--head", 2, *data, "--tokenizer", texts / "wordpiece.json",
        "--epochs", 6, "--batch", 4, "--learning-rate", "0.05", "-o", "run")
    run("explain", "--net", "run/model.onnx", *data, "--test", "new.csv:text", "--penalty", 1, "-o", "why")
    run("report", "run", "why", "-o", "page.html")
    with Opened(chromium, tmp_path / "page.html", viewport={"width": 1280, "height": 900}) as opened:
        page = opened.page
        detail = page.locator(".detail").first
        option = page.locator("[role=option]", has_text="the cat sat on the mat")
        option.click()
        assert detail.locator("blockquote").inner_text() == "the cat sat on the mat <img src=x>"
        examples = detail.locator(".strip.read q").all_inner_texts()
        assert len(examples) == 8 and set(examples) <= {"the cat sat", "a dog on mat"}
        assert page.locator(".card q", has_text="the cat sat").count() >= 1
        if SHOTS:
            page.screenshot(path=f"{SHOTS}/texts-1280-light-full.png", full_page=True)
        opened.clean()


def test_large_pages_open_at_once(chromium):
    path = REPORTS / "large.html"
    assert path.stat().st_size <= 2_000_000
    with Opened(chromium, path) as opened:
        timing = opened.page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
        # On an idle machine a tenth of this; tests may share theirs.
        print(f"{path.stat().st_size} bytes, loaded in {timing:.0f} ms")
        assert timing < 5000
        assert opened.page.locator("[role=option]").count() <= 200
        opened.clean()
