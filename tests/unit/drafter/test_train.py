import csv
import json

import pytest
import torch

from drafter.export import export_head
from drafter.head import HeadConfig
from drafter.train import TrainingConfig, learning_rate, sample_order, train
from drafter.verify import head_problems


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
        for _ in range(24)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def config(method, steps=6):
    head = HeadConfig(method=method, layers=2, draft_vocab_size=128, mask_token_id=0, depth=4, layer_ids=(1, 2, 3))
    return TrainingConfig(head=head, steps=steps, batch=2, checkpoint_every=3, precision="fp32", learning_rate=1e-3)


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
    checkpoint = train(config(method, steps=30), [data], tiny_target, tmp_path / "run", tmp_path / "features")
    curve = losses(tmp_path / "run")
    assert sum(curve[-5:]) < 0.9 * sum(curve[:5])
    head = export_head(checkpoint, tiny_target, tmp_path / "head")
    assert head_problems(head, tiny_target, parallel=method == "p_eagle") == []


def test_training_goes_on_from_an_exported_head(tiny_target, data, tmp_path):
    first = train(config("p_eagle", steps=30), [data], tiny_target, tmp_path / "first", tmp_path / "features")
    head = export_head(first, tiny_target, tmp_path / "head")
    train(config("p_eagle", steps=3).model_copy(update={"start_from": head}), [data], tiny_target, tmp_path / "second", tmp_path / "features")
    assert losses(tmp_path / "second")[0] < 0.8 * losses(tmp_path / "first")[0]


def test_another_configuration_does_not_resume_a_run(tiny_target, data, tmp_path):
    train(config("p_eagle", steps=3), [data], tiny_target, tmp_path / "run", tmp_path / "features")
    with pytest.raises(ValueError, match="another configuration"):
        train(config("p_eagle", steps=9), [data], tiny_target, tmp_path / "run", tmp_path / "features")


def test_the_learning_rate_warms_up_and_falls_to_a_tenth():
    schedule = [learning_rate(TrainingConfig(head=HeadConfig(), steps=100, learning_rate=1.0, warmup=0.1), step) for step in range(100)]
    assert schedule[0] == pytest.approx(0.1)
    assert max(schedule) == pytest.approx(1.0)
    assert schedule[-1] == pytest.approx(0.1, abs=0.01)


def test_every_epoch_sees_every_sample_once():
    seen = [index for step in range(5) for index in sample_order(samples=10, batch=2, step=step, seed=3)]
    assert sorted(seen) == list(range(10))
    assert sample_order(10, 2, 7, 3) == sample_order(10, 2, 7, 3)
