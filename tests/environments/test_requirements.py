"""The locks of this repository themselves."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from environments.locks import read_lock
from tests.environments.stubs import REPOSITORY

LOCKS = sorted((REPOSITORY / "requirements").glob("*.txt"))
LOCKS = [path for path in LOCKS if path.name not in ("rknn-overrides.txt", "farm-overrides.txt", "torch.txt")]


def pins(path: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([\w.-]+)==([\w.]+) ", path.read_text(), re.MULTILINE):
        found.setdefault(name, set()).add(version)
    return found


def release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])


def test_locks_are_those_that_the_commands_use_when_listed() -> None:
    assert {"toolchain.txt", "dev.txt", "rknn-2.3.2.txt"} <= {path.name for path in LOCKS}


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_lock_pins_and_hashes_every_package_when_read(path: Path) -> None:
    text = path.read_text()
    assert re.search(r"^# Size: \d+ MB$", text, re.MULTILINE)
    assert "://" not in text
    entries = re.split(r"\n(?=\S)", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE).strip())
    for entry in entries:
        assert re.match(r"[\w.-]+==[\w.]+ ;", entry), entry
        assert "--hash=sha256:" in entry, entry


@pytest.mark.parametrize("extra", ["dev", "hub", "phonemes"])
def test_extra_agrees_with_the_toolchain_when_both_have_a_package(extra: str) -> None:
    toolchain, added = pins(REPOSITORY / "requirements/toolchain.txt"), pins(REPOSITORY / f"requirements/{extra}.txt")
    shared = toolchain.keys() & added.keys()
    assert shared
    assert {name: toolchain[name] for name in shared} == {name: added[name] for name in shared}


def test_torch_is_a_plain_pin_of_one_release() -> None:
    lock = read_lock(REPOSITORY, "torch")
    assert (lock.pins, lock.hashed) == (("torch==2.13.0",), False)
    assert "://" not in lock.path.read_text()


def test_toolchain_alone_reads_safetensors() -> None:
    toolchain = pins(REPOSITORY / "requirements/toolchain.txt").keys()
    assert "safetensors" in toolchain
    assert not {"torch", "transformers", "huggingface-hub"} & toolchain


def test_hub_extra_holds_all_that_its_client_asks_for_and_no_framework() -> None:
    # Requires-Dist of huggingface-hub 0.36; the last four: of requests.
    asked = {"filelock", "fsspec", "hf-xet", "packaging", "pyyaml", "requests", "tqdm", "typing-extensions"}
    asked |= {"certifi", "charset-normalizer", "idna", "urllib3"}
    hub = pins(REPOSITORY / "requirements/hub.txt")
    assert hub.keys() == {"huggingface-hub"} | asked
    # transformers 4.57.3 of the references refuses to be imported beside a newer one.
    assert all((0, 34) <= release(version) < (1,) for version in hub["huggingface-hub"])


def test_phonemes_extra_holds_all_that_pipers_phonemiser_asks_for() -> None:
    # Requires-Dist of piper-tts 1.8, then of onnxruntime 1.23, then of what those ask for.
    asked = {"onnxruntime", "pathvalidate"} | {"coloredlogs", "flatbuffers", "numpy", "packaging", "protobuf", "sympy"}
    phonemes = pins(REPOSITORY / "requirements/phonemes.txt")
    assert phonemes.keys() == {"piper-tts"} | asked | {"humanfriendly", "mpmath"}
    assert all((1, 3) <= release(version) < (2,) for version in phonemes["piper-tts"])


def test_what_is_under_the_gpl_comes_with_one_extra_alone() -> None:
    having = {path.name for path in LOCKS if {"piper-tts", "piper-phonemize"} & pins(path).keys()}
    assert having == {"phonemes.txt"}


def test_references_bring_the_originals_and_of_their_needs_only_what_the_compared_modules_import() -> None:
    references = pins(REPOSITORY / "requirements/references.txt")
    cosyvoice = {"cosyvoice2-eu", "diffusers", "einops", "f5-tts", "funasr", "x-transformers"}
    assert references.keys() == {"kokoro", "attrs", "qwen-tts", "transformers", "tokenizers", "regex"} | cosyvoice
    # CosyVoice's requirements.txt.
    assert (references["diffusers"], references["x-transformers"]) == ({"0.29.0"}, {"2.11.24"})
    # The last whose blocks turn a block's first channels before they part the heads, as CosyVoice3's do.
    assert references["f5-tts"] == {"0.6.2"}
    # Metadata of qwen-tts 0.1.1.
    assert (references["qwen-tts"], references["transformers"]) == ({"0.1.1"}, {"4.57.3"})
    # Metadata of transformers 4.57.3.
    assert all((0, 22) <= release(version) <= (0, 23) for version in references["tokenizers"])


def test_references_agree_with_the_hub_and_the_toolchain_by_having_none_of_their_packages() -> None:
    references = pins(REPOSITORY / "requirements/references.txt").keys()
    assert not references & pins(REPOSITORY / "requirements/hub.txt").keys()
    assert not references & pins(REPOSITORY / "requirements/toolchain.txt").keys()


def test_farm_brings_snakemake_and_its_executors_in_an_environment_of_its_own() -> None:
    farm = pins(REPOSITORY / "requirements/farm.txt")
    assert {"snakemake", "snakemake-executor-plugin-slurm", "snakemake-executor-plugin-kubernetes"} <= farm.keys()
    assert all((9, 0) <= release(version) < (10,) for version in farm["snakemake"])
    # Metadata of snakemake 9.27: `packaging<26`, which the toolchain's is not; so it cannot be an extra of that.
    assert all(release(version) < (26,) for version in farm["packaging"])
    assert all(release(version) >= (26,) for version in pins(REPOSITORY / "requirements/toolchain.txt")["packaging"])
    assert "connection-pool" not in farm


@pytest.mark.parametrize("path", [path for path in LOCKS if path.name.startswith("rknn")], ids=lambda path: path.name)
def test_toolkit_lock_keeps_the_undeclared_limits_when_read(path: Path) -> None:
    packages = pins(path)
    assert packages["rknn-toolkit2"] == {path.stem.removeprefix("rknn-")}
    assert all(release(version) < (1, 19) for version in packages["onnx"])
    assert all(release(version) < (81,) for version in packages["setuptools"])
    assert all(release(version) < (2,) for version in packages["numpy"])
    assert "torch" not in packages
    assert "opencv-python" not in packages
