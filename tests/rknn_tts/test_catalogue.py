"""The command `catalogue`, as it is typed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from contracts.errors import UserInput
from farm.catalogue_file import read_catalogue
from farm.jobs import Kind, Unplanned
from farm.outcomes import Ended
from rknn_tts.catalogue import catalogue, catalogue_folder
from rknn_tts.cli import run
from rknn_tts.request import Request
from tests.farm.farm_folder import FarmFolder, layers
from tests.rknn_tts.built_engines import write_engine
from tests.rknn_tts.workshop import Heard


@pytest.fixture
def farm(tmp_path: Path) -> FarmFolder:
    """A farm with one engine."""
    made = FarmFolder(tmp_path / "out")
    made.compiled("amy", "rk3588", made.export("amy"))
    return made.plan()


def printed(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of `rknn-tts catalogue WORDS`."""
    code = run(["catalogue", *map(str, words)])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_command_writes_the_catalogue_and_its_page(farm: FarmFolder, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = printed(capsys, farm.output)
    assert code == 0
    assert [entry.voice for entry in read_catalogue(farm.output / "catalogue.json").engines] == ["amy"]
    assert b"amy" in (farm.output / "catalogue.html").read_bytes()
    assert f"catalogue:  {farm.output / 'catalogue.json'}" in out
    assert f"page:       {farm.output / 'catalogue.html'}" in out


def test_command_writes_the_same_bytes_when_it_is_run_again(farm: FarmFolder) -> None:
    def files() -> list[bytes]:
        done = catalogue_folder(farm.output, None, Heard())
        return [path.read_bytes() for path in done.files]

    assert files() == files()


def test_command_of_a_plain_folder_lists_its_engines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_engine(tmp_path / "rk3588" / "amy", "one", "piper.decoder")
    code, out, _ = printed(capsys, tmp_path, "--json")
    told: dict[str, Any] = json.loads(out)
    assert (code, told["exit_code"], told["error"]) == (0, 0, None)
    assert told["files"] == [str(tmp_path / "catalogue.json"), str(tmp_path / "catalogue.html")]
    assert [entry["path"] for entry in told["catalogue"]["engines"]] == ["rk3588/amy/one.rknn"]
    assert told["catalogue"]["matrix"] is None


@pytest.mark.parametrize(
    ("ended", "unplanned", "code", "words"),
    [
        (Ended.DONE, True, 2, "1 left out"),
        (Ended.REFUSED, False, 2, "1 refused"),
        (Ended.REFUSED, True, 2, "1 refused, 1 left out"),
        (Ended.FAILED, True, 1, "1 failed, 1 left out"),
        (Ended.MEMORY, False, 1, "1 failed"),
    ],
)
def test_exit_code_and_sentence_are_of_what_failed(
    farm: FarmFolder, capsys: pytest.CaptureFixture[str], ended: Ended, unplanned: bool, code: int, words: str
) -> None:
    farm.ended(farm.job(Kind.EXPORT, "bad", None), ended=ended, sentence="It is so.")
    farm.unplanned += [Unplanned("x.onnx", "piper", "decoder", "It is no voice.")] * unplanned
    farm.plan()
    found, out, err = printed(capsys, farm.output)
    assert found == code
    assert f"Not everything is as it should be: {words}; the rest is done." in err
    assert ("It is so." in out) is (ended is not Ended.DONE)
    assert ("It is no voice." in out) is unplanned
    assert (farm.output / "catalogue.json").is_file()


def test_sentence_counts_what_failed_apart_from_what_was_refused_and_what_waits(
    farm: FarmFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = farm.job(Kind.EXPORT, "bad", None)
    farm.ended(bad, ended=Ended.REFUSED, sentence="It is no voice.")
    farm.job(Kind.COMPILE, "bad", "rk3588", bad)
    farm.ended(farm.job(Kind.EXPORT, "worse", None), ended=Ended.FAILED, sentence="It is worse.")
    farm.plan()
    _, _, err = printed(capsys, farm.output)
    assert "1 failed, 1 refused, 1 waited for what failed; the rest is done." in err


def test_against_tells_what_changed_in_json_page_and_terminal(
    farm: FarmFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed(capsys, farm.output)
    earlier = tmp_path / "earlier.json"
    (farm.output / "catalogue.json").rename(earlier)
    slower = FarmFolder(tmp_path / "slower")
    slower.compiled("amy", "rk3588", layers=layers(25.0))
    slower.plan()
    code, out, _ = printed(capsys, slower.output, "--against", earlier)
    assert code == 0  # it is worse, and nothing failed
    row = next(line for line in out.splitlines() if "modelled time" in line and "20 ms" in line)
    assert row.split("  ")[0] == "piper decoder, amy, rk3588"
    assert row.endswith("+25.0 %")
    changes = json.loads((slower.output / "catalogue.json").read_text())["changes"]
    assert [one["figure"] for one in changes["worse"][0]["differences"]] == ["modelled time"]
    assert changes["against"] == "../earlier.json"
    assert b"1 engine worse" in (slower.output / "catalogue.html").read_bytes()


def test_against_may_be_the_catalogue_that_is_replaced(farm: FarmFolder, capsys: pytest.CaptureFixture[str]) -> None:
    printed(capsys, farm.output)
    code, out, _ = printed(capsys, farm.output, "--against", farm.output / "catalogue.json")
    assert code == 0
    assert "1 the same" in out


@pytest.mark.parametrize("name", ["catalogue.json", "catalogue.html"])
def test_file_that_is_no_catalogue_is_not_replaced(
    farm: FarmFolder, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (farm.output / name).write_text("mine")
    code, _, err = printed(capsys, farm.output)
    assert code == 2
    assert f"{farm.output / name}: is no catalogue of rknn-tts, and would be replaced" in err
    assert (farm.output / name).read_text() == "mine"
    assert not (farm.output / ("catalogue.html" if name.endswith("json") else "catalogue.json")).exists()


def test_folder_in_the_place_of_a_file_is_refused(farm: FarmFolder, capsys: pytest.CaptureFixture[str]) -> None:
    (farm.output / "catalogue.json").mkdir()
    assert printed(capsys, farm.output)[0] == 2


def refused(folder: Path, **options: Any) -> str:
    """The sentence with which the command refuses `folder`."""
    with pytest.raises(UserInput) as caught:
        catalogue(Request("catalogue", folder=str(folder), **options), Heard())
    return str(caught.value)


def test_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "nowhere", tmp_path / "file"):
        assert refused(folder).startswith(f"{folder}: there is no such folder")
    assert refused(tmp_path).startswith(f"{tmp_path}: there is no engine in this folder")


def test_earlier_catalogue_that_cannot_be_read_is_refused_before_anything_is_written(farm: FarmFolder) -> None:
    assert "cannot be read" in refused(farm.output, against="nowhere.json")
    assert not (farm.output / "catalogue.json").exists()


def test_damaged_plan_is_refused_with_what_to_do(farm: FarmFolder) -> None:
    farm.places.plan.write_text("{")
    assert "is no plan of a farm" in refused(farm.output)
    assert "run `rknn-tts farm MATRIX.toml` again" in refused(farm.output)


def test_folder_is_missing_from_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["catalogue"]) == 2
    assert "FOLDER" in capsys.readouterr().err
