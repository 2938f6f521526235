"""CosyVoice2's speech head: what is read of an `llm.pt`, the graph of it, and what its engine is judged by."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest
import torch
from numpy.typing import NDArray

from contracts.errors import Refusal, UserInput
from converters.cosyvoice2.speech_head import STAGE
from converters.cosyvoice2.speech_head_export import head_model, multiplied
from converters.cosyvoice2.speech_head_file import SpeechHead, read_head
from converters.cosyvoice2.speech_head_stand_in import hidden_states, near_normal, stand_in
from converters.precision import chosen_precision
from converters.stages import Checkpoint, StageExport, StageOptions
from tests.converters.hubs import no_hub

Floats = NDArray[np.float32]

V, D = 11, 6
"""Logits and hidden numbers of a small head."""


def tensors() -> dict[str, torch.Tensor]:
    """A small head, its norm, and what else stands in such a file."""
    made = torch.Generator().manual_seed(1)
    return {
        "llm.model.model.embed_tokens.weight": torch.zeros(5, D, dtype=torch.bfloat16),
        "llm.model.model.norm.weight": torch.arange(1.0, D + 1),
        "llm_decoder.weight": torch.randn(V, D, generator=made),
        "llm_decoder.bias": torch.randn(V, generator=made),
        "speech_embedding.weight": torch.zeros(V, D),
    }


def write_llm(path: Path, change: Mapping[str, torch.Tensor | None] | None = None, zipped: bool = True) -> Path:
    held = {name: held for name, held in {**tensors(), **(change or {})}.items() if held is not None}
    torch.save({**held, "epoch": 3}, path, _use_new_zipfile_serialization=zipped)
    return path


def located(text: Path | str) -> Checkpoint:
    assert STAGE.locate is not None
    return STAGE.locate(str(text), no_hub)


def session(model: ir.Model) -> Any:
    made = onnxruntime.InferenceSession(ir.to_proto(model).SerializeToString(), providers=["CPUExecutionProvider"])

    def run(feed: Mapping[str, Any]) -> dict[str, Any]:
        return {"logits": made.run(["logits"], dict(feed))[0]}

    return run


def opened(text: Path | str, **options: Any) -> StageExport:
    return STAGE.open(located(text), StageOptions(**options), session)("")


@pytest.mark.parametrize("zipped", [True, False])
def test_head_is_read_from_a_folder_and_nothing_else_is(tmp_path: Path, zipped: bool) -> None:
    write_llm(tmp_path / "llm.pt", zipped=zipped)
    head, owed = read_head(located(tmp_path).path), tensors()
    np.testing.assert_array_equal(head.weight, owed["llm_decoder.weight"].numpy())
    assert head.bias is not None
    np.testing.assert_array_equal(head.bias, owed["llm_decoder.bias"].numpy())
    assert head.gain is not None
    assert head.gain.tolist() == [1, 2, 3, 4, 5, 6]


def test_large_file_is_left_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, load, asked = write_llm(tmp_path / "llm.pt"), torch.load, []
    monkeypatch.setattr(torch, "load", lambda *args, **how: (asked.append(how), load(*args, **how))[1])  # type: ignore[func-returns-value]
    head = read_head(path)
    assert [(how["mmap"], how["weights_only"]) for how in asked] == [(True, True)]
    path.write_bytes(b"another")  # what was read is ours by now
    np.testing.assert_array_equal(head.weight, tensors()["llm_decoder.weight"].numpy())


def test_head_of_cosyvoice3_has_no_bias(tmp_path: Path) -> None:
    path = write_llm(tmp_path / "llm.pt", {"llm_decoder.bias": None})
    made = opened(path)
    hidden = np.ones((1, D, 1, 1), np.float32)
    owed = tensors()["llm_decoder.weight"].numpy().sum(axis=1)
    np.testing.assert_allclose(session(made.model)({"hidden": hidden})["logits"].ravel(), owed, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"llm_decoder.weight": None}, "is no llm.pt of CosyVoice2: llm_decoder.weight .* and it has none; give"),
        ({"llm_decoder.weight": torch.zeros(3)}, r"its speech head, and that is \[3\]"),
        ({"llm_decoder.weight": torch.zeros(0, D)}, r"its speech head, and that is \[0, 6\]"),
        (
            {"llm_decoder.bias": torch.zeros(V + 1)},
            r"1 tensors have other sizes: llm_decoder.bias is \[12\], not \[11\]",
        ),
        ({"llm.model.model.norm.weight": torch.zeros(2)}, r"norm.weight is \[2\], not \[6\]"),
        ({"llm_decoder.weight": torch.full((V, D), float("nan"))}, "hold NaN or infinity, .*: llm_decoder.weight"),
        ({"llm_decoder.weight": torch.zeros(V, D).half()}, "llm_decoder.weight is float16, float32 is needed"),
    ],
)
def test_file_is_refused_when_it_has_no_such_head(
    change: dict[str, torch.Tensor | None], said: str, tmp_path: Path
) -> None:
    with pytest.raises(Refusal, match=said):
        read_head(write_llm(tmp_path / "llm.pt", change))


@pytest.mark.parametrize(("name", "said"), [("a.onnx", "ends in none of .pt"), ("b", "no such file or folder; llm.pt")])
def test_checkpoint_is_refused_when_it_is_another_file(name: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "a.onnx").touch()
    with pytest.raises(UserInput, match=said):
        located(tmp_path / name)


def test_random_head_has_the_true_sizes_and_needs_no_torch() -> None:
    found, head = located("random"), stand_in(7)
    assert (found.source.kind, found.extras) == ("random", frozenset())
    assert "nobody's voice" in found.note
    assert head.weight.shape == (6564, 896)
    assert located(Path("random")).source == found.source


def test_drawn_numbers_are_near_normal_and_the_same_for_a_name() -> None:
    drawn = near_normal("a", (40, 1000), 3).astype(np.float64)
    assert abs(drawn.mean()) < 0.02
    assert abs(drawn.std() - 1) < 0.02
    assert 3.5 < np.abs(drawn).max() <= 6  # 40,000 normal numbers reach 4.1
    np.testing.assert_array_equal(near_normal("a", (40, 1000), 3), np.float32(drawn))
    assert not np.array_equal(near_normal("b", (40, 1000), 3), drawn)


def test_hidden_states_are_those_behind_the_norm() -> None:
    gain = np.arange(1, 9, dtype=np.float32)
    states = hidden_states(gain, 3, "a test", 5).astype(np.float64)
    np.testing.assert_allclose(np.sqrt(np.mean(np.square(states / gain), axis=1)), 1, rtol=1e-6)
    assert not np.allclose(states, hidden_states(gain, 3, "another", 5))


def test_graph_multiplies_as_the_layer_does(tmp_path: Path) -> None:
    layer = torch.nn.Linear(D, V)
    head = SpeechHead(layer.weight.detach().numpy(), layer.bias.detach().numpy(), None)
    hidden = np.random.default_rng(2).standard_normal(D).astype(np.float32)
    owed = layer(torch.from_numpy(hidden)).detach().numpy()
    np.testing.assert_allclose(multiplied(head, hidden), owed, rtol=1e-5, atol=1e-6)
    got = session(head_model(head))({"hidden": hidden.reshape(1, D, 1, 1)})["logits"]
    assert got.shape == (1, V, 1, 1)
    np.testing.assert_allclose(got.ravel(), owed, rtol=1e-5, atol=1e-6)


def test_engine_is_judged_on_other_hidden_states_than_ranges_are_found_on(tmp_path: Path) -> None:
    made = opened(write_llm(tmp_path / "llm.pt"))
    judged, found = ({array["hidden"].tobytes() for array in side} for side in (made.feeds, made.calibration))
    assert (len(judged), len(found)) == (64, 100)
    assert not judged & found
    sizes = np.sqrt(np.mean(np.square(np.concatenate([f["hidden"] for f in made.calibration])), axis=(0, 2, 3)))
    assert np.all(np.abs(sizes / np.arange(1, 7) - 1) < 0.3)  # by the gain of the checkpoint's norm


def test_export_is_compared_with_the_layer(tmp_path: Path) -> None:
    evidence = opened(write_llm(tmp_path / "llm.pt")).evidence()
    (cut,), (finished,) = evidence.equalities, evidence.expectations
    np.testing.assert_allclose(np.float32(cut.measured["logits"]), np.float32(cut.reference["logits"]), rtol=1e-4)
    assert len(finished.runs) == 2
    owed = tensors()
    for feed, outputs in finished.runs:
        hidden = torch.from_numpy(np.asarray(feed["hidden"], np.float32).ravel())
        logits = torch.nn.functional.linear(hidden, owed["llm_decoder.weight"], owed["llm_decoder.bias"])
        got = np.asarray(outputs["logits"], np.float32).ravel()
        np.testing.assert_allclose(got, logits.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "bound"),
    [({}, 0.9998), ({"precision": "fp16"}, 0.9999), ({"calibration": "real.npz"}, 0.9999)],
)
def test_bound_of_the_angle_is_that_of_what_ranges_are_found_on(
    options: dict[str, Any], bound: float, tmp_path: Path
) -> None:
    made = opened(write_llm(tmp_path / "llm.pt"), **options)
    assert {figure.figure: figure.bound for figure in made.contract.quality} == {
        "logits_cosine": bound,
        "logits_cosine_mean": None,
        "logits_top1": None,
    }


def test_file_without_the_norm_says_that_its_ranges_are_unknown(tmp_path: Path) -> None:
    made = opened(write_llm(tmp_path / "llm.pt", {"llm.model.model.norm.weight": None}))
    assert any("says nothing of the ranges that real ones have" in note for note in made.notes)


def test_stage_is_in_8_bits_unless_asked_otherwise() -> None:
    assert chosen_precision("head", STAGE.precision, None, None, None) == "w8a8"
    assert chosen_precision("head", STAGE.precision, "fp16", None, None) == "fp16"
