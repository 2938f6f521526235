from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.cosyvoice_reference import ORIGINALS, cosyvoice_module

STOOD_IN = {"scipy", "conformer", "loguru", "einx", "torchaudio", "librosa", "distutils.version"}


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("cosyvoice.transformer.upsample_encoder", "UpsampleConformerEncoder"),
        ("cosyvoice.flow.decoder", "CausalConditionalDecoder"),
        ("cosyvoice.hifigan.generator", "HiFTGenerator"),
        ("cosyvoice.hifigan.f0_predictor", "ConvRNNF0Predictor"),
        ("funasr.models.campplus.model", "CAMPPlus"),
        ("f5_tts.model.modules", "DiTBlock"),
        ("x_transformers.x_transformers", "RotaryEmbedding"),
    ],
)
def test_a_module_is_the_originals_and_leaves_nothing_for_others_to_find(module: str, name: str) -> None:
    before = {held for held in STOOD_IN if held in sys.modules}
    original = getattr(cosyvoice_module(module), name)
    assert original.__module__ == module
    assert issubclass(original, torch.nn.Module)
    assert original is getattr(cosyvoice_module(module), name)
    assert not [held for held in sys.modules if held.partition(".")[0] in ORIGINALS]
    assert {held for held in STOOD_IN if held in sys.modules} == before


def test_importing_the_references_loads_neither_them_nor_torch() -> None:
    program = (
        f"import sys, tests.cosyvoice_reference as r; sys.exit(bool({{'torch', *{ORIGINALS}}} & set(sys.modules)))"
    )
    root = Path(__file__).resolve().parents[1]
    assert subprocess.run([sys.executable, "-c", program], cwd=root, check=False, timeout=60).returncode == 0


def test_hifts_window_is_scipys_periodic_hann() -> None:
    modules = cosyvoice_module("cosyvoice.hifigan.generator")
    window = modules.get_window("hann", 16, fftbins=True)
    np.testing.assert_allclose(window, 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(16) / 16), atol=1e-15)
    with pytest.raises(ValueError, match="Hann"):
        modules.get_window("hann", 16, fftbins=False)


def test_the_estimators_attention_calculates_with_its_mask_as_a_bias() -> None:
    block = cosyvoice_module("matcha.models.components.transformer").BasicTransformerBlock(
        8, 2, 4, activation_fn="gelu"
    )
    attention = block.eval().attn1
    generator = np.random.default_rng(3)
    hidden = generator.standard_normal((1, 5, 8), dtype=np.float32)
    bias = np.where(np.tri(5), 0, -1e10).astype(np.float32)
    with torch.no_grad():
        got = attention(torch.from_numpy(hidden), attention_mask=torch.from_numpy(bias)[None])[0]

    weights = {name: value.double().numpy() for name, value in attention.state_dict().items()}
    query, key, value = ((hidden[0] @ weights[f"to_{name}.weight"].T).reshape(5, 2, 4) for name in "qkv")
    scores = np.einsum("ihd,jhd->hij", query, key) / 2 + bias
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    joined = np.einsum("hij,jhd->ihd", shares / shares.sum(-1, keepdims=True), value).reshape(5, 8)
    wanted = joined @ weights["to_out.0.weight"].T + weights["to_out.0.bias"]
    np.testing.assert_allclose(got.numpy(), wanted, atol=1e-6)


def test_rotation_turns_neighbouring_pairs_of_a_blocks_first_channels_alone() -> None:
    modules, rotary = cosyvoice_module("f5_tts.model.modules"), cosyvoice_module("x_transformers.x_transformers")
    frequencies, _ = rotary.RotaryEmbedding(4).forward_from_seq_len(3)
    hidden = np.random.default_rng(4).standard_normal((1, 3, 8), dtype=np.float32)
    turned = modules.apply_rotary_pos_emb(torch.from_numpy(hidden), frequencies)[0].numpy()

    wanted = hidden[0].copy()
    for position in range(3):
        for pair, frequency in enumerate((1.0, 10000.0**-0.5)):
            sine, cosine = np.sin(position * frequency), np.cos(position * frequency)
            left, right = hidden[0, position, 2 * pair : 2 * pair + 2]
            wanted[position, 2 * pair : 2 * pair + 2] = left * cosine - right * sine, right * cosine + left * sine
    np.testing.assert_allclose(turned, wanted, atol=1e-6)


def test_a_package_that_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ModuleNotFoundError, match="make setup-dev"):
        cosyvoice_module("cosyvoice.hifigan.generator")
