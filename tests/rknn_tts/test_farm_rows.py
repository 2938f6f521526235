"""What a matrix asks for against what there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.errors import UserInput
from contracts.files import sha256_of
from contracts.targets import TARGETS
from converters.registry import STAGES
from rknn_tts.farm_rows import LONGEST_LABEL, rows_of, toolkit_of
from tests.rknn_tts.farm_matrices import PIPER, matrix, touch


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    touch(tmp_path, "voices/a.onnx")
    return tmp_path


def labels(folder: Path, row: str) -> list[str]:
    (asked,) = rows_of(matrix(folder, row))
    return [geometry.label for geometry in asked.geometries]


def test_a_row_is_of_the_familys_first_stage_when_it_names_none(folder: Path) -> None:
    (asked,) = rows_of(matrix(folder, PIPER))
    assert (asked.stage.name, asked.targets) == ("decoder", ("rk3588", "rk3566"))
    assert [(geometry.label, geometry.words) for geometry in asked.geometries] == [("", ())]


@pytest.mark.parametrize("family", sorted({stage.family for stage in STAGES}))
def test_a_row_is_of_every_stage_when_it_says_all(folder: Path, family: str) -> None:
    asked = rows_of(matrix(folder, f'family = "{family}"\nstages = "all"\ncheckpoints = ["x"]'))
    assert [one.stage for one in asked] == [stage for stage in STAGES if stage.family == family]


@pytest.mark.parametrize(
    ("top", "row", "targets"),
    [
        ('targets = "all"', "", TARGETS),
        ('targets = ["RK3588S", "rk3588"]', "", ("rk3588",)),
        ('targets = ["rk3588"]', 'targets = ["rk3562"]', ("rk3562",)),
        ("", 'targets = "all"', TARGETS),
    ],
)
def test_targets_of_a_row_go_before_those_of_the_matrix(
    folder: Path, top: str, row: str, targets: tuple[str, ...]
) -> None:
    (asked,) = rows_of(matrix(folder, f"{PIPER}\n{row}", top=top))
    assert asked.targets == targets


def test_a_width_is_called_by_its_options(folder: Path) -> None:
    row = f'{PIPER}\nwidths = [{{}}, {{window = 109}}, {{windows = "112m,128t"}}, {{decoder_mask = true, window = 93}}]'
    assert labels(folder, row) == ["", "window-109", "windows-112m,128t", "decoder-mask-window-93"]


def test_a_width_is_called_by_a_safe_and_short_name(folder: Path) -> None:
    long = "x" * 100
    touch(folder, "c <ö>.json", f"{long}.json")
    widths = f'[{{config = "c <ö>.json"}}, {{config = "{long}.json"}}]'
    row = f'family = "kokoro"\ncheckpoints = ["package"]\nwidths = {widths}'
    safe, short = labels(folder, row)
    assert safe == "config-c"
    assert len(short) == LONGEST_LABEL
    assert short.startswith("config-xxxxx")


def test_a_number_stands_for_a_text_of_one_number(folder: Path) -> None:
    (asked,) = rows_of(matrix(folder, 'family = "qwen3"\ncheckpoints = ["random"]\nwidths = [{codes = 32}]'))
    assert asked.geometries[0].words == ("--codes=32",)
    assert asked.geometries[0].options.codes == "32"


def test_a_file_counts_from_the_matrix_and_by_what_it_holds(folder: Path) -> None:
    touch(folder, "config/c.json")
    row = 'family = "kokoro"\ncheckpoints = ["package"]\nwidths = [{config = "config/c.json"}]'
    (asked,) = rows_of(matrix(folder, row))
    (geometry,) = asked.geometries
    assert geometry.label == "config-c"
    assert geometry.words == (f"--config={folder}/config/c.json",)
    assert geometry.decides == (f"--config={sha256_of(folder / 'config/c.json')}",)


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ('family = "pipr"\ncheckpoints = ["x"]', "there is no family 'pipr'. Did you mean piper?"),
        ('family = "zzz"\ncheckpoints = ["x"]', "there is no family 'zzz'. There are piper, kokoro, qwen3, inflect,"),
        (f'{PIPER}\nstages = ["decodr"]', "piper has no stage 'decodr'. Did you mean decoder?"),
        (f'{PIPER}\nstages = ["all", "decoder"]', "piper has no stage 'all'. There are decoder, duration_encoder."),
        (f'{PIPER}\ntargets = ["rk3589"]', "The target 'rk3589' is unknown; choose one of rk3562, rk3566, rk3568,"),
        (f"{PIPER}\nwidths = [{{windw = 1}}]", "widths: piper decoder has no option 'windw'. Did you mean window?"),
        (f"{PIPER}\nwidths = [{{codes = '1'}}]", "widths: piper decoder has no option 'codes'. It has window, windows"),
        (f'{PIPER}\nwidths = [{{window = "x"}}]', "widths: window is 'x'; expected is a whole number."),
        (f"{PIPER}\nwidths = [{{window = true}}]", "widths: window is True; expected is a whole number."),
        (f"{PIPER}\nwidths = [{{window = 1.5}}]", "widths: window is 1.5; expected is a whole number."),
        (f"{PIPER}\nwidths = [{{decoder_mask = 1}}]", "widths: decoder_mask is 1; expected is true or false."),
        (f"{PIPER}\nwidths = [{{windows = ''}}]", "widths: windows is ''; expected is a text."),
        (f"{PIPER}\nwidths = [{{windows = 'abc'}}]", "widths: --windows abc: widths in frames are expected, at most"),
        (f"{PIPER}\nwidths = [{{window = 9}}, {{window = 9}}]", "widths: two of them would be called window-9; leave"),
        (f"{PIPER}\nwidths = [{{}}, {{decoder_mask = false}}]", "widths: two of them would be the stage's own; leave"),
        (
            f"{PIPER}\nstages = 'all'\nwidths = [{{window = 109}}]",
            "widths: piper duration_encoder has no option 'window'. It has speaker, widths, relative, sample_rate. ",
        ),
        (
            'family = "kokoro"\ncheckpoints = ["package"]\nwidths = [{config = "c.json"}]',
            "c.json: cannot be read (No such file or directory).",
        ),
    ],
)
def test_a_row_is_refused_when_it_asks_for_what_there_is_not(folder: Path, row: str, sentence: str) -> None:
    with pytest.raises(UserInput) as refused:
        rows_of(matrix(folder, row))
    assert str(refused.value).startswith(f"{folder}/m.toml: [[voices]] 1 (line 2): ")
    assert sentence in str(refused.value)


def test_a_row_is_refused_when_nobody_says_for_which_targets(folder: Path) -> None:
    with pytest.raises(UserInput, match=r'no targets: give the matrix, or this row, targets = \["rk3588"\], or "all"'):
        rows_of(matrix(folder, PIPER, top=""))


def test_the_toolkit_is_the_default_one_or_one_that_has_a_lock(folder: Path) -> None:
    assert toolkit_of(matrix(folder, PIPER)) == "2.3.2"
    assert toolkit_of(matrix(folder, PIPER, top='toolkit = "2.5.0"')) == "2.5.0"
    with pytest.raises(UserInput, match=r"m.toml: toolkit is '9'; there are 2.3.2, 2.5.0\."):
        toolkit_of(matrix(folder, PIPER, top='toolkit = "9"'))
