"""The page of a farm's catalogue, read as a browser would, and looked at in one where it is installed."""

from __future__ import annotations

import base64
import hashlib
import re
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from contracts.verdicts import unproven
from farm.catalogue import Catalogue
from farm.catalogue_diff import changes_since
from farm.catalogue_page import MARK, is_page, page_html
from farm.gathering import gather_farm
from farm.jobs import Kind, Unplanned
from farm.outcomes import Ended
from tests.farm.farm_folder import FarmFolder, simulated
from tests.rknn_tts.engine_page.browser import browser, laid_out
from tests.rknn_tts.engine_page.reading import Reading, read_page

HOSTILE = "<script>alert('x')<\N{FULLWIDTH SOLIDUS}script>\x1b[1m\"&"
"""A voice's name, which is a folder's too."""


def farm_at(output: Path) -> FarmFolder:
    """Two voices for two targets, of which one is unproven, one made twice, one failed and one page waits."""
    farm = FarmFolder(output)
    for voice in ("amy", HOSTILE):
        export = farm.export(voice)
        for target in ("rk3588", "rk3566"):
            verdicts = (simulated(45.5), unproven("log.regtask", f"Of {voice} only a board can tell."))
            compiled = farm.compiled(voice, target, export, page=True, verdicts=verdicts)
    farm.twice(HOSTILE, "rk3566", compiled, engine=b"other")
    failed = farm.job(Kind.COMPILE, "bad", "rk3588")
    farm.ended(failed, ended=Ended.FAILED, sentence=f"The gate says {HOSTILE}.", node=HOSTILE)
    log = farm.places.log(failed.id)
    log.parent.mkdir(parents=True)
    log.write_text("words")
    farm.job(Kind.PAGE, "bad", "rk3588", failed)
    farm.unplanned.append(Unplanned(HOSTILE, "piper", "decoder", f"{HOSTILE} is no voice."))
    return farm.plan()


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    return gather_farm(farm_at(tmp_path_factory.mktemp("farm") / "out").places)


@pytest.fixture(scope="module")
def data(found: Catalogue) -> bytes:
    """The page, against a catalogue in which all was faster, one failure is older, and one engine is no more."""
    faster = [
        replace(entry, cost=replace(entry.cost, modelled_ms=10.0)) for entry in found.engines if entry.cost is not None
    ]
    earlier = replace(found, engines=(*faster, replace(faster[0], voice="gone")), failures=found.failures[:1])
    return page_html(found, changes_since(earlier, found, HOSTILE))


@pytest.fixture(scope="module")
def page(data: bytes) -> Reading:
    return read_page(data)


def test_page_is_one_file_without_a_script(data: bytes, page: Reading) -> None:
    assert {tag for tag, _ in page.tags} & {
        "script",
        "iframe",
        "object",
        "embed",
        "link",
        "base",
        "form",
        "img",
    } == set()
    assert not any(name.startswith("on") or name == "style" for _, attributes in page.tags for name in attributes)
    assert "<script" not in data.decode()
    assert "\x1b" not in data.decode()
    assert "\\x1b[1m" in page.text


def test_policy_of_the_page_allows_its_own_style_and_nothing_else(data: bytes, page: Reading) -> None:
    (policy,) = [a["content"] for tag, a in page.tags if a.get("http-equiv") == "Content-Security-Policy"]
    style = re.search(rb"<style>(.*?)</style>", data, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1]).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def test_links_lead_to_files_of_the_folder_or_parts_of_the_page(found: Catalogue, page: Reading) -> None:
    links = page.attributes("a", "href")
    ids = set(page.attributes("section", "id"))
    assert {link[1:] for link in links if link.startswith("#")} == ids
    files = [link for link in links if not link.startswith("#")]
    assert all(link.startswith("./") for link in files)
    assert sum(link.endswith(".html") for link in files) == 4
    assert f"./.farm/logs/{next(f.job for f in found.failures if f.voice == 'bad')}.log" in files


def test_failures_stand_first_then_changes_then_totals_then_engines(page: Reading) -> None:
    assert page.attributes("section", "id") == ["failures", "changes", "totals", "twice", "stage-1"]


def test_failures_come_with_their_sentences_and_what_waits_behind_them(page: Reading) -> None:
    rows = {row[0]: row for row in page.tables["2 failures"][1:]}
    assert len(rows) == 2
    assert "The gate says <script>" in rows["compile of piper decoder, bad, rk3588"][2]
    (waiting,) = page.tables["1 job that waited for one of these"][1:]
    assert waiting[:2] == ["page of piper decoder, bad, rk3588", "waiting"]
    (left_out,) = page.tables["1 checkpoint that no job was made of"][1:]
    assert left_out[2].endswith(" is no voice.")


def test_changes_show_what_is_worse_new_and_gone(page: Reading) -> None:
    worse = page.tables["4 engines worse"][1:]
    assert {tuple(row[1:]) for row in worse} == {("modelled time", "10 ms", "20 ms", "+100.0 %")}
    assert [row[0] for row in page.tables["1 gone"][1:]] == ["piper decoder, gone, rk3566"]
    assert "1 newly failed" in page.tables
    assert not any(caption.endswith("new") for caption in page.tables)


def test_totals_have_a_row_for_each_stage_and_target(page: Reading) -> None:
    rows = page.tables["By stage and target (least to most, modelled)"][1:]
    assert [row[:4] for row in rows] == [["piper decoder", t, "2", "2"] for t in ("rk3566", "rk3588")]
    assert page.facts["verdicts"] == "4 passed, 0 failed, 4 unproven"
    assert page.facts["jobs"] == "11 of 13 done"


def test_what_only_a_board_can_tell_stands_there_once_for_a_gate(page: Reading) -> None:
    (row,) = page.tables["What only a board can tell"][1:]
    assert row[:3] == ["log.regtask", "piper decoder", "4"]


def test_twice_names_the_file_and_both_nodes(page: Reading) -> None:
    (row,) = page.tables["What was made twice"][1:]
    assert row[1:] == ["differ", "piper-decoder-w102.rknn", "n1", "n2"]


def test_engines_stand_in_a_table_for_each_voice(page: Reading) -> None:
    assert sum(tag == "details" for tag, _ in page.tags) == 2 + 1  # the voices, and the jobs that waited
    (rows,) = [rows for caption, rows in page.tables.items() if caption == "voice.onnx"]
    assert [row[:4] for row in rows[1:]] == [
        ["piper-decoder-w102", t, "1 unproven, 1 passed", "20"] for t in ("rk3566", "rk3588")
    ]


def test_page_without_failures_says_so(tmp_path: Path) -> None:
    farm = FarmFolder(tmp_path / "out")
    farm.compiled("amy", "rk3588")
    told = read_page(page_html(gather_farm(farm.plan().places)))
    assert told.notices == ["none Every engine that was asked for is here, as its manifest says."]
    assert told.attributes("section", "id") == ["failures", "totals", "stage-1"]


def test_page_is_the_same_when_the_catalogue_is(found: Catalogue, tmp_path: Path) -> None:
    again = gather_farm(farm_at(tmp_path / "elsewhere").places)
    assert page_html(again) == page_html(found)


def test_badges_count_what_failed_and_what_was_refused_apart(tmp_path: Path) -> None:
    farm = FarmFolder(tmp_path / "out")
    for number, ended in enumerate((Ended.REFUSED, Ended.REFUSED, Ended.LOST, Ended.WAITING)):
        farm.ended(farm.job(Kind.EXPORT, f"v{number}", None), ended=ended, sentence="No.")
    told = page_html(gather_farm(farm.plan().places)).decode()
    assert re.findall(r'<span class="badge (\w+)">(.*?)</span>', told) == [
        ("warn", "0 engines"),
        ("bad", "1 failed"),
        ("warn", "2 refused"),
    ]


def test_page_is_known_by_its_mark(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "catalogue.html"
    path.write_bytes(data)
    assert is_page(path)
    path.write_bytes(data.replace(MARK, b""))
    assert not is_page(path)


def test_page_shows_both_figures_when_a_board_measured_one(found: Catalogue) -> None:
    entry = found.engines[0]
    measured = replace(found, engines=(replace(entry, measured=replace(entry.measured, board_ms=25.5)),))
    assert "25.5 on a board, 20 modelled" in read_page(page_html(measured)).text


def test_page_grows_by_less_than_a_kilobyte_an_engine(tmp_path: Path, found: Catalogue) -> None:
    # 8,415 engines are then less than 8.4 MB, which a browser opens in seconds.
    def size(count: int) -> int:
        entries = tuple(replace(found.engines[0], voice=f"en_US-voice{number:04d}-medium") for number in range(count))
        return len(page_html(replace(found, engines=entries)))

    assert (size(60) - size(10)) / 50 < 3000  # a voice with its table and one engine
    entries = tuple(replace(found.engines[0], path=f"rk3588/amy/{number:04d}.rknn") for number in range(60))
    whole, few = (len(page_html(replace(found, engines=entries[:count]))) for count in (60, 10))
    assert (whole - few) / 50 < 1000


def test_browser_lays_the_page_out_when_it_is_narrow_or_wide(data: bytes, tmp_path: Path) -> None:
    program = browser()
    if program is None:
        warnings.warn("No Chromium is installed: pages are not looked at in a browser.", stacklevel=1)
        return
    path = tmp_path / "catalogue.html"
    path.write_bytes(data)
    for width, seen in laid_out(program, path, [400, 1400], tmp_path / "profile").items():
        assert seen["overflow"] <= 0, (width, seen["wide"])  # tables scroll by themselves
        assert len(seen["sections"]) == 5
        assert all(w > 300 and h > 40 for _, w, h in seen["sections"])
        assert seen["paper"] == "rgb(255, 255, 255)"  # the style sheet's: the policy lets it in
        assert seen["good"] == "rgb(26, 127, 55)"
