"""The schema: it is the committed one, it is a schema, and it judges plans as the reader does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from rknn_tts_runtime.plans.schema import plan_schema, schema_text

from tests.docs.pages import ROOT
from tests.runtime.plans.test_reading import FORMS, KEEPING, REFUSED, generator

BEYOND_A_SCHEMA = {
    "a key twice",
    "a key twice in the text",
    "misspelt ending",
}
"""Refused by the reader alone."""


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    return Draft202012Validator(plan_schema())


def test_the_committed_schema_is_the_definitions() -> None:
    assert (ROOT / "docs/execution-plan.schema.json").read_text(encoding="utf-8") == schema_text()


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(plan_schema())


GOOD: dict[str, Any] = {
    **FORMS,
    **{case: data for case, (data, _) in KEEPING.items()},
    "params": generator(overlap=3, gain=True),
    "a ladder": {
        "piper_tts.exec_plan": {
            "duration_encoder": {"impl": "rknn", "artifacts": {"main": "n128.rknn, n192.rknn", "host": "h.onnx"}}
        }
    },
    "a step": {"cosyvoice2.exec_plan": {"flow_estimator": {"impl": "rknn", "artifacts": {"step": "s.rknn"}}}},
    "others": {"session_options": {"qwen3_tts.conv_weight_type": "f16"}},
}


@pytest.mark.parametrize("case", GOOD)
def test_a_good_plan_is_valid(validator: Draft202012Validator, case: str) -> None:
    assert list(validator.iter_errors(GOOD[case])) == []


@pytest.mark.parametrize("case", sorted(set(REFUSED) - BEYOND_A_SCHEMA - {"no JSON", "no text"}))
def test_what_the_reader_refuses_is_not_valid(validator: Draft202012Validator, case: str) -> None:
    assert not validator.is_valid(REFUSED[case][0])


@pytest.mark.parametrize("case", sorted(BEYOND_A_SCHEMA))
def test_what_a_schema_cannot_say_is_listed_because_it_cannot(validator: Draft202012Validator, case: str) -> None:
    data = REFUSED[case][0]
    assert validator.is_valid(json.loads(data) if isinstance(data, str) else data)
