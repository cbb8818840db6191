import csv
import json
import os
import shutil
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

from drafter import features
from drafter.data import DataError, read_generations
from drafter.export import export_head
from drafter.features import FeatureStore
from drafter.head import HeadConfig
from drafter.recipe import TrainingConfig, sample_order, schedule
from drafter.train import train
from drafter.verify import head_problems, tensor_shapes


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "d.jsonl"
    generator = torch.Generator().manual_seed(1)
    rows = [
        {
            "prompt_ids": torch.randint(3, 320, (6,), generator=generator).tolist(),
            "response_ids": torch.randint(3, 320, (20,), generator=generator).tolist(),
            "finish": "length",
        }
        for _ in range(60)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def config(method, steps=6):
    head = HeadConfig(method=method, layers=2, draft_vocab_size=128, mask_token_id=0, depth=4, layer_ids=(1, 2, 3))
    return TrainingConfig(head=head, steps=steps, batch=2, checkpoint_every=3, precision="fp32", optimizer="adamw", learning_rate=1e-3)


def losses(run):
    with (run / "log.csv").open() as file:
        return [float(row["loss"]) for row in csv.DictReader(file)]


class Killed(BaseException):
    pass


@pytest.mark.parametrize("method", ["p_eagle", "eagle3"])
def test_a_killed_run_goes_on_as_if_it_had_not_been(method, tiny_target, data, tmp_path, monkeypatch):
    train(config(method), [data], tiny_target, tmp_path / "whole", tmp_path / "features")

    def die_after_step_three(*arguments, original=torch.save):
        original(*arguments)
        monkeypatch.undo()
        (tmp_path / "cut" / "checkpoint.partial").rename(tmp_path / "cut" / "checkpoint.pt")
        raise Killed

    monkeypatch.setattr(torch, "save", die_after_step_three)
    with pytest.raises(Killed):
        train(config(method), [data], tiny_target, tmp_path / "cut", tmp_path / "features")
    train(config(method), [data], tiny_target, tmp_path / "cut", tmp_path / "features")
    assert losses(tmp_path / "cut") == pytest.approx(losses(tmp_path / "whole"), rel=1e-2)


@pytest.mark.parametrize("method", ["p_eagle", "eagle3"])
def test_training_lowers_the_loss_and_exports_a_head_that_fits(method, tiny_target, data, tmp_path):
    train(config(method, steps=30), [data], tiny_target, tmp_path / "run", tmp_path / "features")
    curve = losses(tmp_path / "run")
    assert sum(curve[-5:]) < 0.9 * sum(curve[:5])
    head = export_head(tmp_path / "run", tiny_target, tmp_path / "head")
    assert head_problems(head, tiny_target, parallel=method == "p_eagle") == []


def test_training_goes_on_from_an_exported_head(tiny_target, data, tmp_path):
    train(config("p_eagle", steps=30), [data], tiny_target, tmp_path / "first", tmp_path / "features")
    head = export_head(tmp_path / "first", tiny_target, tmp_path / "head")
    train(config("p_eagle", steps=3).model_copy(update={"start_from": head}), [data], tiny_target, tmp_path / "second", tmp_path / "features")
    assert losses(tmp_path / "second")[0] < 0.8 * losses(tmp_path / "first")[0]
    for _ in range(2):  # over the head it began from; the second time with acceptance, as a user would
        export_head(tmp_path / "second", tiny_target, head)
        assert "| optimizer steps | 33, 2 samples each |" in (head / "README.md").read_text()


def test_added_layers_change_nothing_until_they_are_trained(tiny_target, data, tmp_path):
    train(config("p_eagle", steps=30), [data], tiny_target, tmp_path / "first", tmp_path / "features")
    head, curves = export_head(tmp_path / "first", tiny_target, tmp_path / "head"), {}
    for layers in (2, 4):
        grown = HeadConfig(**{**config("p_eagle").head.model_dump(), "layers": layers})
        again = config("p_eagle", steps=3).model_copy(update={"head": grown, "start_from": head})
        train(again, [data], tiny_target, tmp_path / f"layers-{layers}", tmp_path / "features")
        curves[layers] = losses(tmp_path / f"layers-{layers}")
    assert curves[4][0] == pytest.approx(curves[2][0], rel=1e-5)
    assert curves[4][1:] != pytest.approx(curves[2][1:], rel=1e-5)
    assert head_problems(export_head(tmp_path / "layers-4", tiny_target, tmp_path / "grown"), tiny_target, parallel=True) == []


def test_another_configuration_does_not_resume_a_run(tiny_target, data, tmp_path):
    train(config("p_eagle", steps=3), [data], tiny_target, tmp_path / "run", tmp_path / "features")
    with pytest.raises(ValueError, match="another configuration"):
        train(config("p_eagle", steps=9), [data], tiny_target, tmp_path / "run", tmp_path / "features")


def test_the_learning_rate_warms_up_and_falls_to_a_tenth():
    rates = [schedule(TrainingConfig(head=HeadConfig(), steps=100, warmup=0.1), step) for step in range(100)]
    assert rates[0] == pytest.approx(0.1)
    assert max(rates) == pytest.approx(1.0)
    assert rates[-1] == pytest.approx(0.1, abs=0.01)


def test_every_epoch_sees_every_sample_once():
    seen = [index for step in range(5) for index in sample_order(samples=10, batch=2, step=step, seed=3)]
    assert sorted(seen) == list(range(10))
    assert sample_order(10, 2, 7, 3) == sample_order(10, 2, 7, 3)


def test_a_longer_row_than_allowed_is_refused(tiny_target, data, tmp_path):
    short = config("p_eagle").model_copy(update={"max_length": 20})
    with pytest.raises(DataError, match=r"d.jsonl row 1: 26 tokens, the limit is 20"):
        train(short, [data], tiny_target, tmp_path / "run", tmp_path / "features")


def test_answers_of_another_tokenizer_are_refused(tiny_target, tmp_path, monkeypatch):
    monkeypatch.setattr(features, "SURPRISE_LIMIT", 3.0)  # random weights: every answer surprises by about log(320) = 5.8 nats
    path = tmp_path / "other.jsonl"
    path.write_text(json.dumps({"prompt_ids": [5, 6], "response_ids": list(range(7, 27)), "finish": "length"}) + "\n")
    with pytest.raises(DataError, match=r"other.jsonl row 1: the target would not write this answer \(\d\.\d nats a token\)"):
        train(config("p_eagle"), [path], tiny_target, tmp_path / "run", tmp_path / "features")


def test_data_added_later_leaves_earlier_features_good(tiny_target, data, tmp_path):
    rows = (list(read_generations(data, 320)) * 2)[:100]
    folder = tmp_path / "features"
    FeatureStore(folder, rows[:64], tiny_target, (1, 2, 3)).compute()
    (first,) = folder.glob("*.safetensors")
    written = first.stat().st_mtime_ns
    FeatureStore(folder, rows, tiny_target, (1, 2, 3)).compute()
    assert len(list(folder.glob("*.safetensors"))) == 2
    assert first.stat().st_mtime_ns == written


def test_a_fine_tuned_copy_is_another_target(tiny_target, tmp_path):
    shutil.copytree(tiny_target, tmp_path / "copy")
    assert features.target_fingerprint(tmp_path / "copy") == features.target_fingerprint(tiny_target)
    weights = load_file(tiny_target / "model.safetensors")
    weights["model.layers.3.mlp.up_proj.weight"] += 0.01
    save_file(weights, tmp_path / "copy" / "model.safetensors", metadata={"format": "pt"})
    assert features.target_fingerprint(tmp_path / "copy") != features.target_fingerprint(tiny_target)


def test_a_long_sequence_trained_in_partitions_learns_the_same(tiny_target, data, tmp_path):
    for width in (2048, 7):
        train(config("p_eagle").model_copy(update={"partition": width}), [data], tiny_target, tmp_path / str(width), tmp_path / "features")
    assert losses(tmp_path / "7") == pytest.approx(losses(tmp_path / "2048"), rel=1e-4)


def test_a_run_draws_its_curves_and_measures_held_out_rows(tiny_target, data, tmp_path):
    run = tmp_path / "run"
    train(config("p_eagle"), [data], tiny_target, run, tmp_path / "features")
    with (run / "held_out.csv").open() as file:
        (last,) = csv.DictReader(file)
    assert (last["step"], float(last["length"]) >= 1) == ("6", True)
    assert (run / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_the_model_card_says_what_the_head_is(tiny_target, data, tmp_path):
    train(config("p_eagle"), [data], tiny_target, tmp_path / "run", tmp_path / "features")
    table = tmp_path / "acceptance.csv"
    table.write_text("head,k,task,length,drafts,tokens,seconds,rate_1,rate_2\nx,2,code,1.61,10,16,1,0.45,0.16\n")
    head = export_head(tmp_path / "run", tiny_target, tmp_path / "head", table, base_model="example/tiny", license_id="mit")
    card = (head / "README.md").read_text()
    assert card.startswith("---\nlicense: mit\nbase_model: example/tiny\n")
    assert "| data | d.jsonl (60 rows, 1,200 answer tokens) |" in card
    assert "| code | 2 | 1.61 | 45%  16% |" in card
    assert "| optimizer steps | 6, 2 samples each |" in card
    assert '"parallel_drafting": true' in card


def test_a_head_may_be_read_by_whoever_may_read_its_config(tiny_target, data, tmp_path):
    train(config("p_eagle", steps=1), [data], tiny_target, tmp_path / "run", tmp_path / "features")
    head = export_head(tmp_path / "run", tiny_target, tmp_path / "head")
    assert (head / "model.safetensors").stat().st_mode == (head / "config.json").stat().st_mode


def test_a_trained_embedding_goes_with_the_head(tiny_target, data, tmp_path):
    own = config("p_eagle")
    own = own.model_copy(update={"head": own.head.model_copy(update={"embedding": "trained"})})
    train(own, [data], tiny_target, tmp_path / "run", tmp_path / "features")
    head = export_head(tmp_path / "run", tiny_target, tmp_path / "head")
    assert tensor_shapes(head / "model.safetensors")["embed_tokens.weight"] == [320, 64]
    assert head_problems(head, tiny_target, parallel=True) == []


def test_two_processes_share_a_batch_and_learn_the_same(tiny_target, data, tmp_path):
    command = ["train", "--data", str(data), "--target", str(tiny_target), "--depth", "4", "--draft-vocab", "128", "--steps", "4", "--batch", "4",
               "--precision", "fp32", "--capture", "1", "--capture", "2", "--capture", "3"]  # fmt: skip
    environment = {**os.environ, "PEAGLE_HOME": str(tmp_path / "home"), "OMP_NUM_THREADS": "1"}
    for processes in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-m", "drafter.cli", *command, "--run", str(tmp_path / processes), "--processes", processes],
            env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-1000:]
    assert losses(tmp_path / "2") == pytest.approx(losses(tmp_path / "1"), rel=1e-3)
