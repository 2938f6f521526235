from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rknn_tts_runtime import identity
from rknn_tts_runtime.engine_file import short_contract_of
from rknn_tts_runtime.faults import BadInput, Mismatch
from rknn_tts_runtime.identity import (
    check_digest,
    check_host,
    check_identity,
    check_latent,
    check_stage,
    check_twin,
    identity_notes,
    runs_on,
    sha256_of,
)
from rknn_tts_runtime.manifest import EngineManifest, manifest_of

from contracts import contract as toolchain_contract
from contracts.contract import Cache, Contract, Source, TensorSpec, Trim, short_contract
from contracts.quantisation import Quantisation
from contracts.targets import TARGETS
from tests.runtime.engine_folders import CONTRACT, STEM, STEP_CONTRACT, TRIMMED_CONTRACT, WINDOW, write_engine

BUILD = "make engine FAMILY=piper STAGE=decoder TARGET=rk3588 TOOLKIT=2.3.2 CHECKPOINT=voice.onnx"


def loaded(folder: Path, contract: Contract = CONTRACT, inside: Contract | None = CONTRACT) -> EngineManifest:
    return manifest_of(write_engine(folder, contract, inside).engine)


def check(manifest: EngineManifest, soc: str | None = None) -> None:
    check_identity(manifest, short_contract_of(manifest.engine), soc)


def test_targets_and_what_is_said_of_stand_ins_are_those_of_the_toolchain() -> None:
    assert (identity.TARGETS, identity.STAND_IN) == (TARGETS, toolchain_contract.STAND_IN)


@pytest.mark.parametrize(
    "contract",
    [
        CONTRACT,
        STEP_CONTRACT,
        TRIMMED_CONTRACT,
        replace(CONTRACT, role="n128"),
        replace(CONTRACT, window=None, cache=Cache(12, ())),
        replace(CONTRACT, source=Source("random", "ab" * 32, "random")),
        replace(CONTRACT, quantisation=Quantisation()),
        replace(CONTRACT, inputs=tuple(TensorSpec(f"state{place}", (1, 8, 1, 30)) for place in range(67))),
        replace(CONTRACT, family=None, stage=None),
    ],
    ids=["window", "step", "trim", "role", "cache", "stand-in", "8 bits", "many tensors", "foreign"],
)
def test_identity_holds_when_contract_and_manifest_are_of_one_engine(tmp_path: Path, contract: Contract) -> None:
    for soc in ("rk3588", "rk3588s", None):
        check(loaded(tmp_path, contract, contract), soc)


@pytest.mark.parametrize(
    ("inside", "said"),
    [
        ({"family": "inflect"}, "its family is inflect by the contract inside it, and piper by its manifest"),
        ({"family": None, "stage": None}, "its family is none by the contract inside it, and piper"),
        ({"stage": "duration_encoder"}, "its stage is duration_encoder by"),
        ({"role": "n128"}, "its role is n128 by the contract inside it, and none by"),
        ({"source": Source("x", "fe" * 32, "checkpoint")}, "its source is fefefefefefefefe by the contract inside it"),
        ({"source": replace(CONTRACT.source, kind="random")}, "its stand-in is True by"),
        ({"inputs": CONTRACT.inputs[:1]}, "its inputs is [['z', [1, 2, 1, 6], 'float32']] by"),
        ({"inputs": (TensorSpec("z", (1, 4, 1, 6)), CONTRACT.inputs[1])}, "its inputs is [['z', [1, 4, 1, 6]"),
        ({"outputs": (TensorSpec("audio", (1, 1, 1, 24)),)}, "its outputs is [['audio', [1, 1, 1, 24], 'float32']] by"),
        ({"window": replace(WINDOW, hop=4)}, "its window is [6, 2, 2, 2, 4, 22050] by the contract inside it, and [6,"),
        ({"window": replace(WINDOW, left=1, right=3)}, "its window is [6, 2, 1, 3, 2, 22050] by"),
        ({"window": None}, "its window is none by"),
        ({"step": STEP_CONTRACT.step}, "its step is [37, 1920, 24000, 12] by the contract inside it, and none by"),
        ({"trim": Trim("place", 4)}, "its trim is 4 by the contract inside it, and none by"),
        ({"cache": Cache(12, ())}, "its cache is 12 by the contract inside it, and none by"),
        ({"quantisation": Quantisation()}, "its precision is w8a8 by the contract inside it, and none by"),
        (
            {"inputs": tuple(TensorSpec(f"state{place}", (1, 8, 1, 30)) for place in range(67))},
            "its number of inputs is 67 by the contract inside it, and 2 by",
        ),
    ],
)
def test_identity_names_both_sides_and_the_command_when_they_are_of_two_engines(
    tmp_path: Path, inside: dict[str, Any], said: str
) -> None:
    manifest = loaded(tmp_path, CONTRACT, replace(CONTRACT, **inside))
    with pytest.raises(Mismatch) as raised:
        check(manifest)
    message = str(raised.value)
    assert said in message
    assert message.startswith(f"{tmp_path / STEM}.rknn: ")
    assert f"its manifest {STEM}.json: they are of two engines." in message
    assert message.endswith(f"To build it: {BUILD}")


@pytest.mark.parametrize(("target", "toolkit", "said"), [("rk3576", "2.3.2", "target"), ("rk3588", "2.5.0", "toolkit")])
def test_identity_refuses_when_target_or_toolkit_differ(tmp_path: Path, target: str, toolkit: str, said: str) -> None:
    contract = json.loads(short_contract(CONTRACT, target, toolkit))
    with pytest.raises(Mismatch, match=f"its {said} is "):
        check_identity(loaded(tmp_path), contract, None)


@pytest.mark.parametrize(
    "contract", [{"window": "\x1b[31m"}, {"in": "z"}, {"out": None}, {"family": {"a": 1}}, {"stage": ["decoder"]}, {}]
)
def test_identity_refuses_when_a_contract_is_of_another_form(tmp_path: Path, contract: dict[str, Any]) -> None:
    whole = {**json.loads(short_contract(CONTRACT, "rk3588", "2.3.2")), **contract} if contract else {}
    with pytest.raises(Mismatch) as raised:
        check_identity(loaded(tmp_path), whole, None)
    assert str(raised.value).isprintable()


def test_identity_refuses_an_engine_without_a_contract_but_of_a_foreign_onnx(tmp_path: Path) -> None:
    with pytest.raises(Mismatch, match=r"carries no contract.*piper-decoder-w6\.json says the decoder of piper\. To b"):
        check(loaded(tmp_path, inside=None))
    check(loaded(tmp_path, replace(CONTRACT, family=None, stage=None), inside=None))


def test_identity_refuses_an_engine_of_another_size(tmp_path: Path) -> None:
    manifest = loaded(tmp_path)
    contract = short_contract_of(manifest.engine)
    with manifest.engine.open("ab") as file:
        file.write(b"x")
    size = manifest.engine.stat().st_size
    with pytest.raises(Mismatch, match=rf"has {size} bytes, and by its manifest {STEM}\.json {size - 1}: it was"):
        check_identity(manifest, contract, None)
    manifest.engine.unlink()
    with pytest.raises(BadInput, match="cannot be read"):
        check_identity(manifest, contract, None)


@pytest.mark.parametrize(("target", "soc"), [("rk3588", "rk3588s"), ("rk3588", "rk3588s2"), ("rk3566", "rk3568")])
def test_identity_takes_chips_for_one_whose_npu_is_the_same(tmp_path: Path, target: str, soc: str) -> None:
    check(manifest_of(write_engine(tmp_path, target=target).engine), soc)


def test_identity_refuses_the_engine_of_another_chip_and_tells_how_to_build_the_right_one(tmp_path: Path) -> None:
    with pytest.raises(Mismatch) as raised:
        check(loaded(tmp_path), "rk3576")
    assert str(raised.value).endswith(
        ": is for rk3588, and this board has an rk3576. To build it: " + BUILD.replace("rk3588", "rk3576")
    )


def test_identity_says_so_when_no_engine_can_be_built_for_the_chip(tmp_path: Path) -> None:
    with pytest.raises(Mismatch, match=r"this board has an rk3399\. No engine can be built for that chip\."):
        check(loaded(tmp_path), "rk3399")


def test_stage_holds_or_names_both_sides(tmp_path: Path) -> None:
    manifest = loaded(tmp_path, replace(CONTRACT, role="n128"))
    check_stage(manifest, "piper", "decoder")
    with pytest.raises(Mismatch) as raised:
        check_stage(manifest, "kokoro", "generator")
    assert str(raised.value).endswith(
        "is taken for the generator of kokoro, and is the decoder of piper (n128). Name the right engine, or build it: "
        "make engine FAMILY=kokoro STAGE=generator TARGET=rk3588 TOOLKIT=2.3.2"
    )


def test_stage_says_so_when_the_engine_is_of_a_foreign_onnx(tmp_path: Path) -> None:
    with pytest.raises(Mismatch, match="is taken for the decoder of piper, and is a foreign ONNX"):
        check_stage(loaded(tmp_path, replace(CONTRACT, family=None, stage=None)), "piper", "decoder")


def test_latent_holds_or_names_both_sides(tmp_path: Path) -> None:
    manifest = loaded(tmp_path)
    check_latent(manifest, 2)
    check_latent(manifest, 2, "z")
    with pytest.raises(
        Mismatch, match=re.escape("its input 'z' [1, 2, 1, 6] takes 2 channels, and the host half gives 4")
    ):
        check_latent(manifest, 4)
    with pytest.raises(Mismatch, match="has no input 'x'; its inputs are z, lengths"):
        check_latent(manifest, 2, "x")


def test_digests_hold_when_the_files_are_of_one_export(tmp_path: Path) -> None:
    files = write_engine(tmp_path)
    manifest = manifest_of(files.engine)
    check_digest(manifest)
    check_twin(manifest)
    check_host(manifest, files.host)


def test_digests_refuse_files_of_another_export(tmp_path: Path) -> None:
    files = write_engine(tmp_path)
    manifest = manifest_of(files.engine)
    for path in (files.engine, files.twin, files.host):
        path.write_bytes(b"another")
    digest = "a" + "0" * 63
    for check_one, kind in (
        (check_digest, "engine"),
        (check_twin, "twin"),
        (lambda m: check_host(m, files.host), "host half"),
    ):
        with pytest.raises(
            Mismatch, match=rf"{STEM}\.json has the digest [0-9a-f]{{16}} of its {kind}: they are of two"
        ):
            check_one(manifest)
    with pytest.raises(Mismatch, match="the digest a000000000000000 of its engine"):
        check_digest(replace(manifest, engine_sha256=digest))
    with pytest.raises(Mismatch, match="has no digest of its host half"):
        check_host(replace(manifest, host_sha256=None), files.host)
    with pytest.raises(BadInput, match="cannot be read"):
        check_host(manifest, tmp_path / "none.onnx")


def test_sha256_is_that_of_the_standard(tmp_path: Path) -> None:
    (tmp_path / "abc").write_bytes(b"abc")  # FIPS 180-4's example
    assert sha256_of(tmp_path / "abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_sha256_is_of_files_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.onnx")
    (tmp_path / "zeros.onnx").symlink_to("/dev/zero")
    for name, why in (("pipe.onnx", "is no file"), ("zeros.onnx", "is no file"), ("gone.onnx", "cannot be read")):
        with pytest.raises(BadInput, match=f"{name}: {why}"):
            sha256_of(tmp_path / name)


def test_notes_tell_of_stand_ins_eight_bits_and_foreign_graphs(tmp_path: Path) -> None:
    name = f"{STEM}.rknn"
    assert identity_notes(loaded(tmp_path)) == ()
    odd = replace(
        CONTRACT, family=None, stage=None, source=Source("random", "ab" * 32, "random"), quantisation=Quantisation()
    )
    assert identity_notes(loaded(tmp_path, odd)) == (
        f"{name}: seeded random weights: a stand-in, not a voice.",
        f"{name}: is of a foreign ONNX: nothing tells what it is for.",
        f"{name}: is of 8 bits (w8a8), not fp16.",
    )


@pytest.mark.parametrize(
    ("change", "command"),
    [
        ({"source": Source("random", "ab" * 32, "random")}, BUILD.replace("voice.onnx", "random")),
        ({"source": Source("x 1.0.0: y.onnx", "ab" * 32, "package")}, BUILD.replace(" CHECKPOINT=voice.onnx", "")),
        ({"source": Source("a; rm b", "ab" * 32, "checkpoint")}, BUILD.replace("voice.onnx", "'a; rm b'")),
        ({"family": None, "stage": None}, f"make compile MODEL={STEM}.onnx TARGET=rk3588 TOOLKIT=2.3.2"),
    ],
)
def test_commands_name_the_checkpoint_as_it_has_to_be_given(
    tmp_path: Path, change: dict[str, Any], command: str
) -> None:
    contract = replace(CONTRACT, **change)
    manifest = loaded(tmp_path, contract, replace(contract, window=None))
    with pytest.raises(Mismatch) as raised:
        check(manifest)
    assert str(raised.value).endswith(f"To build it: {command}")


@pytest.mark.parametrize(
    ("target", "soc", "runs"),
    [
        ("rk3588", "rk3588", True),
        ("rk3588", "rk3588s", True),
        ("rk3568", "rk3566", True),
        ("rk3566", "rk3568", True),
        ("rk3588", "rk3576", False),
        ("rk3562", "rk3566", False),
    ],
)
def test_engines_run_on_the_chips_that_have_their_npu(target: str, soc: str, runs: bool) -> None:
    assert runs_on(target, soc) is runs
