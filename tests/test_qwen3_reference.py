from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from models.qwen3.config import TRUE_CONFIG, DecoderConfig
from tests.qwen3_reference import PACKAGE, reference_decoder

SMALL = replace(
    TRUE_CONFIG,
    codebook_dim=16,
    codebook_size=32,
    latent_dim=32,
    hidden_size=16,
    intermediate_size=32,
    num_hidden_layers=1,
    num_attention_heads=2,
    num_key_value_heads=2,
    head_dim=8,
    sliding_window=12,
    decoder_dim=32,
)


@pytest.fixture(scope="module")
def small() -> torch.nn.Module:
    """The original, a few thousand numbers large, with no weight at a value that would hide something."""
    decoder = reference_decoder(SMALL)
    generator = torch.Generator().manual_seed(6)
    for name, parameter in decoder.named_parameters():
        # Usages that are divided by stay away from 0.
        wide = torch.rand(parameter.shape, generator=generator)
        parameter.copy_(wide + 0.5 if name.endswith("cluster_usage") else (wide - 0.5) * 0.6)
    return decoder


def codes(count: int, config: DecoderConfig = SMALL) -> torch.Tensor:
    generator = torch.Generator().manual_seed(count)
    return torch.randint(config.codebook_size, (1, config.num_quantizers, count), generator=generator)


def test_reference_decoder_is_the_originals_without_its_package_being_run(small: torch.nn.Module) -> None:
    assert type(small).__module__ == f"{PACKAGE}.modeling_qwen3_tts_tokenizer_v2"
    assert not {"qwen_tts", "qwen_tts.core", "librosa", "gradio", "torchaudio", "soundfile", "sox"} & set(sys.modules)


def test_importing_the_reference_alone_loads_neither_transformers_nor_torch() -> None:
    program = (
        "import sys, tests.qwen3_reference; sys.exit(bool({'transformers', 'torch', 'qwen_tts'} & set(sys.modules)))"
    )
    root = Path(__file__).resolve().parents[1]
    assert subprocess.run([sys.executable, "-c", program], cwd=root, check=False, timeout=60).returncode == 0


def test_reference_decoder_has_the_published_number_of_parameters() -> None:
    # Counted in the original: the published decoder's 114,323,137.
    with torch.device("meta"):
        decoder = reference_decoder(TRUE_CONFIG)
    assert sum(parameter.numel() for parameter in decoder.parameters()) == 114_323_137


def test_reference_decoder_is_for_inference_with_written_out_attention(small: torch.nn.Module) -> None:
    assert not any(module.training for module in small.modules())
    assert not any(parameter.requires_grad for parameter in small.parameters())
    attention = small.get_submodule("pre_transformer.layers.0.self_attn")
    owners = [small, small.get_submodule("pre_transformer"), attention]
    assert [vars(owner)["config"]._attn_implementation for owner in owners] == ["eager"] * 3


def test_reference_decoder_gives_1920_samples_a_code(small: torch.nn.Module) -> None:
    audio = small(codes(3))
    assert audio.shape == (1, 1, 3 * 1920)
    assert audio.abs().max() <= 1
    assert audio.std() > 1e-3


def test_reference_decoder_sums_the_vectors_of_its_codebooks(small: torch.nn.Module) -> None:
    numbers = {name: value.double().numpy() for name, value in small.state_dict().items() if "quantizer" in name}

    def vector(prefix: str, code: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        book = f"quantizer.{prefix}._codebook"
        return np.asarray(numbers[f"{book}.embedding_sum"][code] / numbers[f"{book}.cluster_usage"][code])

    given = codes(5)
    frame = given[0, :, 3].tolist()
    acoustic = np.sum([vector(f"rvq_rest.vq.layers.{i}", code) for i, code in enumerate(frame[1:])], axis=0)
    wanted = numbers["quantizer.rvq_first.output_proj.weight"][:, :, 0] @ vector("rvq_first.vq.layers.0", frame[0])
    wanted = wanted + numbers["quantizer.rvq_rest.output_proj.weight"][:, :, 0] @ acoustic
    found = small.get_submodule("quantizer").decode(given)  # type: ignore[operator]
    np.testing.assert_allclose(found[0, :, 3].numpy(), wanted, rtol=1e-4, atol=1e-6)


def test_reference_decoder_depends_on_no_later_code(small: torch.nn.Module) -> None:
    early, late = codes(20), codes(20)
    late[:, :, 15:] = (late[:, :, 15:] + 1) % SMALL.codebook_size
    changed = (small(early) - small(late)).abs().amax(dim=1)[0].reshape(20, 1920).amax(dim=1)
    assert changed[:15].max() <= 1e-6  # a sum over other shapes may round otherwise
    assert changed[15:].min() > 1e-4


def test_reference_transformer_attends_to_the_window_and_no_further(small: torch.nn.Module) -> None:
    # With one layer, a code's influence ends with the last code whose window of 12, itself included, holds it.
    hidden = torch.randn(1, 30, SMALL.latent_dim, generator=torch.Generator().manual_seed(1))
    other = hidden.clone()
    other[:, 4] += 1
    transformer = small.get_submodule("pre_transformer")
    first, second = (transformer(inputs_embeds=each).last_hidden_state for each in (hidden, other))
    changed = (first - second).abs().amax(dim=2)[0]
    assert (changed > 1e-6).nonzero()[:, 0].tolist() == list(range(4, 16))


def test_reference_decoder_is_the_same_each_time_and_leaves_random_numbers_alone() -> None:
    torch.manual_seed(3)
    wanted = torch.rand(2)
    torch.manual_seed(3)
    first, second = reference_decoder(SMALL).state_dict(), reference_decoder(SMALL).state_dict()
    assert torch.equal(torch.rand(2), wanted)
    assert all(torch.equal(value, second[name]) for name, value in first.items())


def test_reference_decoder_refuses_another_number_of_semantic_codebooks() -> None:
    with pytest.raises(ValueError, match="one semantic codebook"):
        reference_decoder(replace(SMALL, n_q_semantic=2))
