"""The playground in a real browser: Debian's Chromium."""

import shutil
import time
from importlib.resources import files

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from tests.conftest import EAGLE3, P_EAGLE, PLAIN
from tests.stack import eventually

AXE = (files("axe_playwright_python") / "axe.min.js").read_text()  # axe-core as PyPI has it
VIEWS = ("chat", "race", "endpoints", "catalog")


@pytest.fixture(scope="module")
def chromium():
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("no chromium here: Debian's packages chromium and chromium-driver have it")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "disable-gpu", "window-size=1280,900"):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options, Service(driver))
    yield browser
    browser.quit()


@pytest.fixture
def page(chromium, server):
    chromium.switch_to.new_window("tab")  # a session of its own
    chromium.set_window_size(1280, 900)
    yield Page(chromium, server.url)
    chromium.close()
    chromium.switch_to.window(chromium.window_handles[0])


class Page:
    def __init__(self, browser, url):
        self.browser, self.url = browser, url

    def open(self, view):
        self.browser.get(f"{self.url}/#{view}")
        eventually(lambda: self.one(f"#view-{view}").is_displayed(), 20)
        eventually(lambda: len(self.all("#chat-endpoint option")) >= 3, 20)
        return self

    def one(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def fill(self, selector, text):
        field = self.one(selector)
        field.clear()
        field.send_keys(text)

    def setting(self, selector, value):
        """A field of the closed settings."""
        self.browser.execute_script(f"document.querySelector('{selector}').value = '{value}'")

    def say(self, text, endpoint, tokens=40):
        Select(self.one("#chat-endpoint")).select_by_value(endpoint)
        self.setting("#max-tokens", tokens)
        self.fill("#message", text)
        self.one("#message").send_keys(Keys.ENTER)

    def answered(self):
        """The last answer's article, when it has ended."""
        eventually(lambda: self.all("article.assistant") and not self.all("article[aria-busy]"), 120)
        return self.all("article.assistant")[-1]

    def figures(self, element):
        return dict(zip(*([one.text for one in element.find_elements(By.TAG_NAME, tag)] for tag in ("dt", "dd")), strict=True))


def test_a_chat_shows_its_figures_and_which_tokens_were_drafted(page, openai):
    page.open("chat").say("Count from one to twenty.", P_EAGLE)
    answer = page.answered()
    text = answer.find_element(By.CSS_SELECTOR, ".text").text
    same = openai.chat.completions.create(
        model=P_EAGLE, messages=[{"role": "user", "content": "Count from one to twenty."}], max_tokens=40, temperature=0
    )
    assert " ".join(text.split()) == " ".join(same.choices[0].message.content.split())
    depths = [token.get_attribute("data-depth") for token in answer.find_elements(By.CSS_SELECTOR, ".token")]
    assert {"0", "1"} <= set(depths)
    figures = page.figures(answer)
    assert figures["tokens"] == str(same.usage.completion_tokens)
    assert 1 < float(figures["acceptance length"]) <= 5
    assert float(figures["tokens/s"]) > 0
    assert figures["TTFT"].endswith(" ms")


def test_without_speculation_the_target_writes_every_token(page):
    page.open("chat").say("Count from one to twenty.", PLAIN)
    depths = {token.get_attribute("data-depth") for token in page.answered().find_elements(By.CSS_SELECTOR, ".token")}
    assert depths == {"0"}


def test_a_conversation_goes_on_and_a_reload_in_the_middle_of_an_answer_keeps_it(page):
    page.open("chat").say("Tell me a long story about a fox.", P_EAGLE, tokens=400)
    eventually(lambda: len(page.all("article.assistant .token")) > 10, 60)
    page.browser.refresh()
    eventually(lambda: page.all("article.assistant .note"), 20)
    assert "loaded anew" in page.one("article.assistant .note").text
    assert len(page.all("article.assistant .token")) > 10
    eventually(lambda: page.one("#chat-form [type=submit]").is_enabled(), 20)
    page.say("And how does it end?", P_EAGLE)
    assert page.answered().find_element(By.CSS_SELECTOR, ".text").text
    assert len(page.all("article.assistant")) == 2


def test_stop_ends_an_answer(page):
    page.open("chat").say("Tell me a long story about a fox.", P_EAGLE, tokens=400)
    eventually(lambda: len(page.all("article.assistant .token")) > 5, 60)
    page.one("#stop").click()
    assert "Stopped." in page.answered().text


def test_a_race_ends_in_a_table(page):
    page.open("race")
    page.fill("#race-tokens", "48")
    page.one("#race-form [type=submit]").click()
    eventually(lambda: page.all("#result table"), 120)
    rows = {
        row.find_element(By.TAG_NAME, "th").text: [cell.text for cell in row.find_elements(By.TAG_NAME, "td")] for row in page.all("#result tbody tr")
    }
    assert set(rows) >= {P_EAGLE, EAGLE3, PLAIN}
    times = [float(cells[0].removesuffix(" s")) for cells in rows.values()]
    assert times == sorted(times)
    assert rows[PLAIN][5] == "1.00"
    assert all(cells[6] == "yes" for cells in rows.values())  # greedy: speculation changes no token
    assert len(page.all("#lanes article")) == len(rows)


def test_an_endpoint_fails_while_one_looks_and_is_deleted(page, server):
    page.open("catalog")
    eventually(lambda: page.all("#cards form"), 20)
    card = next(one for one in page.all("#cards article") if "GPU" in one.text.splitlines()[1])
    name = card.find_element(By.TAG_NAME, "input")
    name.clear()
    name.send_keys("will-fail")
    Select(card.find_element(By.TAG_NAME, "select")).select_by_value("none")
    card.find_element(By.CSS_SELECTOR, "form button").click()
    eventually(lambda: page.one("#view-endpoints").is_displayed(), 20)
    shown = eventually(lambda: page.all('[data-name="will-fail"]'), 20)[0]
    eventually(lambda: shown.find_element(By.CSS_SELECTOR, ".status").text == "Failed", 120)
    assert "GPU" in shown.find_element(By.CSS_SELECTOR, ".reason").text
    delete = shown.find_element(By.TAG_NAME, "button")
    delete.click()
    page.one('#delete-dialog [value="cancel"]').click()
    time.sleep(0.5)
    assert server.client.call("GET", "/v1/endpoints/will-fail")["status"] == "Failed"
    delete.send_keys(Keys.ENTER)
    page.one('#delete-dialog [value="delete"]').click()
    eventually(lambda: not page.all('[data-name="will-fail"]'), 60)
    assert "will-fail" not in {one["spec"]["name"] for one in server.client.call("GET", "/v1/endpoints")}


def test_a_name_that_is_taken_is_said_at_the_form(page):
    page.open("catalog")
    card = eventually(lambda: page.all("#cards article"), 20)[0]
    name = card.find_element(By.TAG_NAME, "input")
    name.clear()
    name.send_keys(P_EAGLE, Keys.ENTER)
    eventually(lambda: "exists already" in card.find_element(By.CSS_SELECTOR, ".reason").text, 20)


def test_an_endpoint_is_deployed_chatted_with_and_deleted(page, server):
    page.open("catalog")
    card = eventually(lambda: [one for one in page.all("#cards article") if "runs on a CPU" in one.text], 20)[0]
    name = card.find_element(By.TAG_NAME, "input")
    name.clear()
    name.send_keys("fourth")
    card.find_element(By.CSS_SELECTOR, "form button").click()
    shown = eventually(lambda: page.all('[data-name="fourth"]'), 20)[0]
    assert shown.find_element(By.CSS_SELECTOR, ".status").text == "Creating"
    eventually(lambda: shown.find_element(By.CSS_SELECTOR, ".status").text == "InService", 300)
    page.open("chat").say("Hello!", "fourth")
    assert page.figures(page.answered())["acceptance length"] != "–"
    page.open("endpoints")
    eventually(lambda: "now" in page.one('[data-name="fourth"] figcaption').text, 30)
    page.one('[data-name="fourth"] button').click()
    page.one('#delete-dialog [value="delete"]').click()
    eventually(lambda: not page.all('[data-name="fourth"]'), 60)


def test_the_presets_are_sagemakers_and_the_snippets_name_this_server(page):
    page.open("catalog")
    card = eventually(lambda: [one for one in page.all("#cards article") if "runs on a CPU" in one.text], 20)[0]
    for summary in card.find_elements(By.TAG_NAME, "summary"):
        summary.click()
    assert "SM_VLLM_SPECULATIVE_CONFIG" in card.text
    assert [pre.get_attribute("aria-label").split(",")[0] for pre in card.find_elements(By.TAG_NAME, "pre")] == ["curl", "openai", "boto3"]
    assert all(page.url in pre.text for pre in card.find_elements(By.TAG_NAME, "pre"))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everybody_can_use_it(page, theme, tmp_path_factory):
    page.open("chat").say("Write a Python function that adds up the even numbers of a list.", P_EAGLE, tokens=90)
    page.answered()
    page.browser.execute_script("document.documentElement.style.colorScheme = arguments[0]", theme)
    screenshots = tmp_path_factory.getbasetemp() / "screenshots"
    screenshots.mkdir(exist_ok=True)
    for view in VIEWS:
        page.browser.execute_script("location.hash = arguments[0]", view)
        eventually(lambda view=view: page.one(f"#view-{view}").is_displayed(), 20)
        time.sleep(0.5)
        page.browser.save_screenshot(str(screenshots / f"{view}-{theme}.png"))
        page.browser.execute_script(AXE)
        found = page.browser.execute_async_script("axe.run().then(arguments[0])")["violations"]
        assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found if one["impact"] in ("serious", "critical")] == []


@pytest.mark.parametrize("view", VIEWS)
def test_it_fits_a_phone(page, view):
    page.browser.set_window_size(390, 844)
    page.open(view)
    wide, visible = page.browser.execute_script("return [document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide <= visible


def test_nothing_went_wrong_in_the_browser(page):
    page.open("chat")
    severe = [one for one in page.browser.get_log("browser") if one["level"] == "SEVERE" and "409" not in one["message"]]
    assert severe == []
