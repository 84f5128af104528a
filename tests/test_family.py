"""The measured columns of the atlas: who is in them, what is measured, what is stored."""

from __future__ import annotations

import math

import pytest

from tfviz import catalogue, experiments
from tfviz.experiments import extrapolation, family

NO_CORE = {  # ready, but nothing that a model takes as its attention, or not for a causal one
    *("soft_dictionary", "scaled_dot_product_attention", "token_embedding", "pointwise_mlp"),
    *("residual_connection", "layer_norm_pre_post", "encoder_decoder", "causal_masking"),
    *("lm_objectives", "alrfou_auxiliary_losses", "kv_cache", "decoding_strategies"),
    *("sparse_transformer_usage", "blockwise_attention"),
    "bp_transformer",  # its rows are words and spans; a GPT and its masks have words alone
    # its chunks are cut by later tokens too
    *("reformer_lsh", "reversible_residual", "chunked_feedforward"),
    "routing_transformer",  # later tokens may take an earlier one's seat in a cluster
    # on rows that do not follow one another their memories stay empty: then they are xl_relative
    *("transformer_xl_recurrence", "compressive_transformer", "memorizing_transformer"),
    *("knn_lm", "spalm"),  # a store beside the model, and what comes after its last layer
    # they change how often a layer is used, and what is added before it: not the attention
    *("act", "universal_transformer", "ut_time_position_signal", "ut_act"),
    "sparse_sinkhorn",  # causal, nothing is left in it of Sinkhorn's steps
    "sac",  # its edges need a predictor, which is trained by reward beside the model
    *("etc", "longformer", "bigbird"),  # encoders: their global tokens read what is to come
    # where a token leaves, and when: their attention is the model's own
    *("depth_adaptive_training", "depth_classifiers", "calm_confidence", "ltt_calibration"),
    *("atomic_patterns", "image_transformer_2d"),  # a choice of masks; a text has no rows above
}


def test_every_core_and_every_position_that_is_ready_is_measured():
    ready = {row.id for row in catalogue.MECHANISMS if row.built}
    assert set(family.MECHANISMS) == ready - NO_CORE
    assert set(family.RACED.values()) <= set(extrapolation.ENCODINGS)


def test_what_the_race_has_trained_is_the_same_model():
    for name, raced in family.RACED.items():
        own, theirs = (
            {k: x.shape for k, x in family.compare.model(make, "recall", 0).named_parameters()}
            for make in (lambda: family.MECHANISMS[name](64), extrapolation.VARIANTS[raced])  # noqa: B023
        )
        assert own == theirs, name


@pytest.mark.parametrize("name", family.MECHANISMS)
def test_a_step_has_a_time_and_a_memory_beside_the_plain_model(name, monkeypatch):
    monkeypatch.setattr(family, "LENGTHS", (32,))
    monkeypatch.setattr(family, "ROUNDS", 1)
    found = family.measure({"task": "cost", "name": name}, 0)
    assert set(found) == {"time", "memory", "parameters"} and found["parameters"] > 100_000
    assert found["time"][0] > 0 and found["memory"][0] > 0


def test_the_stored_result_has_all_of_it():
    result = experiments.load("family")
    assert list(result["mechanisms"]) == list(family.MECHANISMS)
    for name, row in result["mechanisms"].items():
        assert len(row["time"]) == len(row["memory"]) == len(result["lengths"])
        assert ("text" in row) == ("recall" in row) == (name not in family.RACED)
        for task in {"text", "recall"} & row.keys():
            assert len(row[task]) == len(family.SEEDS)
    plain = result["mechanisms"][family.PLAIN]
    assert all(math.isclose(x, 1, rel_tol=0.25) for x in plain["time"] + plain["memory"])
    strided = result["mechanisms"]["sparse_transformer_strided"]
    assert strided["time"][-1] < 1 < strided["time"][0]  # it pays only where the text is long
    assert max(strided["memory"]) < 1.25  # the fused dense kernel keeps no L × L scores either
    additive = result["mechanisms"]["additive_attention"]["memory"]
    assert additive[-1] > 3 * additive[-2]  # quadratic against linear
