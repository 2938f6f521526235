"""The engine that a kit is about, and its own case: inputs, what is right, bounds, and what is refused."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from contracts.contract import Contract, Source, TensorSpec
from contracts.errors import UserInput
from contracts.files import sha256_of, sha256_of_bytes
from contracts.manifest import EngineFile, LogSummary, manifest_text, read_manifest
from contracts.verdicts import at_least
from rknn_tts.carried import Feed, Outputs, carry
from rknn_tts.probe.engine_case import engine_draft
from rknn_tts.probe.subject import open_subject
from tests.gates.small_graphs import row, scale_proto
from tests.rknn_tts.engines import engine_bytes
from tests.runtime.probing.kits import OTHER_PROVES, PROVES, write_subject

CONTRACT = Contract(
    None, None, Source("net.onnx", "ab" * 32, "checkpoint"), (TensorSpec("x", (1, 4)),), (TensorSpec("y", (1, 4)),)
)


def subject(folder: Path, feeds: tuple[Feed, ...] = (), originals: tuple[Outputs, ...] = (), **keys: Any) -> Path:
    """An engine that doubles, in `folder`; its twin carries `feeds` and `originals`, its manifest has these keys."""
    write_subject(folder)
    twin = scale_proto(2.0).SerializeToString()
    if feeds:
        twin = carry(twin, CONTRACT, feeds, originals)
    (folder / "net.onnx").write_bytes(twin)
    data = engine_bytes()
    (folder / "net.rknn").write_bytes(data)
    rewrite_manifest(folder, engine=EngineFile("net.rknn", sha256_of_bytes(data), len(data)), **keys)
    return folder / "net.rknn"


def rewrite_manifest(folder: Path, **keys: Any) -> None:
    manifest = read_manifest(folder / "net.json")
    twin = dataclasses.replace(manifest.onnx, sha256=sha256_of(folder / "net.onnx"))
    changed = dataclasses.replace(manifest, onnx=twin, **keys)
    (folder / "net.json").write_text(manifest_text(changed), encoding="utf-8")


FEEDS = ({"x": row(1, 2, 3, 4)}, {"x": row(0, -1, 5, 0.5)})


def test_case_has_the_real_feeds_and_what_the_twin_gives_for_them(tmp_path: Path) -> None:
    draft, notes = engine_draft(open_subject(subject(tmp_path, FEEDS)))
    assert [list(feed["x"][0]) for feed in draft.feeds] == [[1, 2, 3, 4], [0, -1, 5, 0.5]]
    assert [list(outputs["y"][0]) for outputs in draft.expected] == [[2, 4, 6, 8], [0, -2, 10, 1]]
    assert draft.bounds_db == {"y": 40.0}
    assert (draft.proves, draft.manifest, notes) == ((PROVES, OTHER_PROVES), "net.json", ())
    assert "2 real feeds" in draft.what
    assert [name for name, _ in draft.files] == ["net.rknn", "net.json", "net.onnx"]


def test_what_the_original_gave_is_right_when_it_is_carried_and_of_the_engine_s_size(tmp_path: Path) -> None:
    originals = ({"y": np.array([2.5, 4, 6, 8], np.float32)}, {"y": np.array([0, -2], np.float32)})
    draft, _ = engine_draft(open_subject(subject(tmp_path, FEEDS, originals)))
    assert draft.expected[0]["y"].tolist() == [[2.5, 4, 6, 8]]
    assert draft.expected[1]["y"].tolist() == [[0, -2, 10, 1]]  # a shorter one says nothing of the padding
    assert "onnxruntime" in draft.what
    draft, _ = engine_draft(open_subject(subject(tmp_path, FEEDS[:1], originals[:1])))
    assert "against the unpatched original" in draft.what


def test_inputs_are_seeded_and_that_is_said_when_the_twin_carries_none(tmp_path: Path) -> None:
    first, notes = engine_draft(open_subject(subject(tmp_path)))
    again, _ = engine_draft(open_subject(tmp_path / "net.rknn"))
    assert notes == ("net.onnx carries no real inputs: the kit has seeded ones.",)
    np.testing.assert_array_equal(first.feeds[0]["x"], again.feeds[0]["x"])
    np.testing.assert_array_equal(first.expected[0]["y"], 2 * first.feeds[0]["x"])


def test_simulator_s_figure_is_that_of_the_worst_output_and_of_no_other_gate(tmp_path: Path) -> None:
    verdicts = (at_least("simulator.y", 52.0, 40, "dB"), at_least("simulator.drift", 0.5, 0.1, "percent"))
    draft, _ = engine_draft(open_subject(subject(tmp_path, FEEDS, verdicts=verdicts, log=LogSummary())))
    assert draft.simulator_db == 52.0


def test_kit_is_refused_when_every_output_of_a_feed_is_silent(tmp_path: Path) -> None:
    silent = {"x": row(0, 0, 0, 0)}
    with pytest.raises(UserInput, match=r"net\.onnx: every output is zero"):
        engine_draft(open_subject(subject(tmp_path, (FEEDS[0], silent))))


def test_kit_is_refused_when_the_twin_gives_what_is_not_finite(tmp_path: Path) -> None:
    with pytest.raises(UserInput, match=r"net\.onnx: gives numbers in y that are not finite"):
        engine_draft(open_subject(subject(tmp_path, ({"x": row(1, np.inf, 0, 0)},))))


@pytest.mark.parametrize(
    "feed", [{"x": row(1, 2, 3)}, {"z": row(1, 2, 3, 4)}, {"x": row(1, 2, 3, 4).astype(np.float64)}]
)
def test_kit_is_refused_when_the_twin_carries_inputs_of_another_engine(tmp_path: Path, feed: Feed) -> None:
    with pytest.raises(UserInput, match=r"carries inputs .* and the engine takes"):
        engine_draft(open_subject(subject(tmp_path, (feed,))))


def removed(folder: Path, name: str) -> None:
    (folder / name).unlink()


def other_twin(folder: Path) -> None:
    (folder / "net.onnx").write_bytes(scale_proto(3.0).SerializeToString())


def other_engine(folder: Path) -> None:
    (folder / "net.rknn").write_bytes(engine_bytes(b"another"))


def copied(folder: Path) -> None:
    for ending in ("rknn", "json"):
        shutil.copy(folder / f"net.{ending}", folder / f"copy.{ending}")


@pytest.mark.parametrize(
    ("change", "name", "says"),
    [
        (lambda folder: removed(folder, "net.rknn"), "net.rknn", "there is no such file"),
        (lambda folder: removed(folder, "net.json"), "net.rknn", "no manifest beside it"),
        (lambda folder: removed(folder, "net.onnx"), "net.rknn", r"net\.onnx: .* is missing; copy it there"),
        (other_twin, "net.rknn", r"net\.onnx: is not the ONNX that net\.rknn was compiled from"),
        (other_engine, "net.rknn", "STALE"),
        (lambda folder: None, "net.json", r"is a manifest; name the engine itself"),
        (lambda folder: None, "net.onnx", r"is an ONNX; name the engine itself"),
        (copied, "copy.rknn", r"copy\.json: is the manifest of net\.rknn, not of copy\.rknn"),
    ],
)
def test_subject_is_refused(tmp_path: Path, change: Any, name: str, says: str) -> None:
    subject(tmp_path)
    change(tmp_path)
    with pytest.raises(UserInput, match=says):
        open_subject(tmp_path / name)


def test_subject_is_refused_when_a_kit_cannot_hold_its_name(tmp_path: Path) -> None:
    subject(tmp_path)
    data = json.loads((tmp_path / "net.json").read_text("utf-8"))
    data["engine"]["file"] = "my net.rknn"
    (tmp_path / "net.rknn").rename(tmp_path / "my net.rknn")
    (tmp_path / "my net.json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(UserInput, match=r"my net\.rknn: a kit takes names of letters"):
        open_subject(tmp_path / "my net.rknn")


def test_twin_that_was_damaged_is_told(tmp_path: Path) -> None:
    path = subject(tmp_path, FEEDS)
    twin = onnx.load(tmp_path / "net.onnx")
    (entry,) = (entry for entry in twin.metadata_props if entry.key == "rknn-tts/feeds/1")
    entry.value = "AAAA"
    onnx.save(twin, tmp_path / "net.onnx")
    rewrite_manifest(tmp_path)
    with pytest.raises(UserInput, match="carries damaged feeds"):
        engine_draft(open_subject(path))


def test_kit_is_refused_when_an_output_is_of_a_type_that_it_cannot_hold(tmp_path: Path) -> None:
    path = subject(tmp_path, FEEDS, outputs=(TensorSpec("y", (1, 4), "int8"),))
    with pytest.raises(UserInput, match=r"net\.onnx: y is of int8, and a kit holds float32 and int64 only"):
        engine_draft(open_subject(path))
