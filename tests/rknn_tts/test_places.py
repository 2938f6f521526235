from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from contracts.contract import Contract, Source
from contracts.errors import UserInput
from rknn_tts.places import (
    Places,
    check_folder,
    engine_places,
    export_failed_place,
    export_place,
    make_folder,
    set_place,
    voice_of,
)


def contract(family: str | None = "piper", kind: str = "checkpoint", name: str = "en_US-joe.onnx") -> Contract:
    return Contract(family, "decoder" if family else None, Source(name, "ab" * 32, kind), (), ())


STEM = "piper-decoder-w109"


@pytest.mark.parametrize(
    ("made", "voice"),
    [
        (contract(), "en_US-joe"),
        (contract(name="model.v2.safetensors"), "model.v2"),
        (contract(name="...onnx"), "...onnx"),
        (contract(name="a/../.."), ".."),
        (contract(kind="package"), None),
        (contract(kind="random"), None),
        (contract(family=None), None),
    ],
)
def test_voice_of_is_the_stem_of_a_users_checkpoint(made: Contract, voice: str | None) -> None:
    assert voice_of(made) == voice


def test_engine_places_are_the_designs_when_the_checkpoint_is_the_users() -> None:
    places = engine_places(contract(), STEM, "rk3588", None)
    assert places.engine == Path("engines/rk3588/en_US-joe/piper-decoder-w109.rknn")
    assert places.manifest == Path("engines/rk3588/en_US-joe/piper-decoder-w109.json")
    assert places.onnx == Path("engines/rk3588/en_US-joe/piper-decoder-w109.onnx")
    assert places.log == Path("build-logs/en_US-joe-piper-decoder-w109-rk3588.log")
    assert places.layers == Path("build-logs/en_US-joe-piper-decoder-w109-rk3588.layers.json")
    assert places.failed == Path("build-logs/en_US-joe-piper-decoder-w109-rk3588.failed.json")


@pytest.mark.parametrize("made", [contract(kind="package"), contract(family=None)])
def test_engine_places_have_no_voice_when_the_user_gave_none(made: Contract) -> None:
    places = engine_places(made, STEM, "rk3566", None)
    assert places.engine == Path("engines/rk3566/piper-decoder-w109.rknn")
    assert places.log == Path("build-logs/piper-decoder-w109-rk3566.log")


@pytest.mark.parametrize(
    ("output", "engine"),
    [
        ("out/", "out/piper-decoder-w109.rknn"),
        ("out", "out/piper-decoder-w109.rknn"),
        ("there", "there/piper-decoder-w109.rknn"),
        ("a.folder", "a.folder/piper-decoder-w109.rknn"),
        ("a.folder/", "a.folder/piper-decoder-w109.rknn"),
        (".", "piper-decoder-w109.rknn"),
        ("joe.rknn", "joe.rknn"),
        ("out/joe.v2.rknn", "out/joe.v2.rknn"),
    ],
)
def test_engine_places_follow_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str, engine: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    (tmp_path / "a.folder").mkdir()
    places = engine_places(contract(), STEM, "rk3588", output)
    assert places.engine == Path(engine)
    assert places.manifest == Path(engine).with_suffix(".json")
    assert places.log.parent == Path("build-logs")


@pytest.mark.parametrize("output", ["joe.onnx", "joe.bin", "out/joe.json", "x.RKNN"])
def test_engine_places_refuse_a_file_of_another_kind(output: str) -> None:
    with pytest.raises(UserInput, match=rf"--output {output}: a folder or a file ending in \.rknn is expected"):
        engine_places(contract(), STEM, "rk3588", output)


def _every_combination(output: str | None) -> list[Places]:
    return [
        engine_places(contract(name=name), STEM, target, output)
        for name in ("a.onnx", "b.onnx")
        for target in ("rk3588", "rk3566")
    ]


def test_engine_places_of_two_targets_or_voices_share_no_file() -> None:
    files = [path for places in _every_combination(None) for path in vars(places).values()]
    assert len(files) == len(set(files)) == 4 * 6


@pytest.mark.parametrize("output", ["other", "other/joe.rknn"])
def test_engine_places_share_no_log_where_output_gives_engines_one_name(output: str) -> None:
    # That the second does not replace the first is seen to by `overwriting`.
    made = _every_combination(output)
    assert len({places.engine for places in made}) == 1
    for kind in ("log", "layers", "failed"):
        assert len({getattr(places, kind) for places in made}) == 4


@pytest.mark.parametrize(
    ("made", "output", "place"),
    [
        (contract(), None, "engines/rk3588/en_US-joe/piper-decoder.set.json"),
        (contract(kind="package"), None, "engines/rk3588/piper-decoder.set.json"),
        (contract(), "out", "out/piper-decoder.set.json"),
        (contract(), "out.v2/", "out.v2/piper-decoder.set.json"),
        (contract(), "a.folder", "a.folder/piper-decoder.set.json"),
        (contract(), ".", "piper-decoder.set.json"),
    ],
)
def test_set_place_is_where_its_engines_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: Contract, output: str | None, place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.folder").mkdir()
    assert set_place(made, "rk3588", output) == Path(place)
    assert set_place(made, "rk3588", output).parent == engine_places(made, STEM, "rk3588", output).engine.parent


@pytest.mark.parametrize("output", ["joe.rknn", "out/joe.onnx", "joe.json", "joe.set.json"])
def test_set_place_is_refused_when_output_names_one_file(output: str) -> None:
    with pytest.raises(UserInput, match=rf"^--output {output}: several files are written; name a folder"):
        set_place(contract(), "rk3588", output)


def test_export_place_is_of_no_target() -> None:
    assert export_place(contract(), STEM, None, None) == Path("engines/onnx/en_US-joe/piper-decoder-w109.onnx")
    assert export_place(contract(), STEM, "rk3566", None) == Path(
        "engines/onnx/rk3566/en_US-joe/piper-decoder-w109.onnx"
    )
    assert export_place(contract(kind="package"), STEM, None, None) == Path("engines/onnx/piper-decoder-w109.onnx")
    assert export_place(contract(), STEM, None, "x/joe.onnx") == Path("x/joe.onnx")
    with pytest.raises(UserInput, match=r"ending in \.onnx"):
        export_place(contract(), STEM, None, "joe.rknn")


def test_export_failed_place_is_among_the_logs() -> None:
    assert export_failed_place(contract(), STEM) == Path("build-logs/en_US-joe-piper-decoder-w109.failed.json")
    assert export_failed_place(contract(kind="package"), STEM) == Path("build-logs/piper-decoder-w109.failed.json")


def test_make_folder_makes_all_above_and_leaves_nothing_in_it(tmp_path: Path) -> None:
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")
    assert list((tmp_path / "a" / "b").iterdir()) == []


def test_make_folder_is_undisturbed_when_many_do_it_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(make_folder, [tmp_path / "a"] * 400))
    assert list((tmp_path / "a").iterdir()) == []


def test_make_folder_names_the_folder_when_a_file_stands_there(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a file")
    with pytest.raises(UserInput, match=r"a/b: cannot be written .*--output names another place"):
        make_folder(tmp_path / "a" / "b")


def test_check_folder_makes_nothing(tmp_path: Path) -> None:
    check_folder(tmp_path / "a" / "b")
    check_folder(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("below", ["", "a", "a/b"])
def test_check_folder_names_what_is_in_the_way(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("a thesis")
    with pytest.raises(UserInput, match=r"file: cannot be written \(File exists\); --output names another place\.$"):
        check_folder(tmp_path / "file" / below)


def test_check_folder_refuses_where_no_folder_can_be_made() -> None:
    with pytest.raises(UserInput, match=r"^/proc: cannot be written \(.+\); another one\.$"):
        check_folder(Path("/proc/new/folder"), "another one")
