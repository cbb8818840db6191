from typer.testing import CliRunner

from drafter.cli import app


def test_calibration_data_for_a_scheme_that_takes_none_is_refused(tmp_path):
    done = CliRunner().invoke(app, ["quantize", str(tmp_path / "out"), "--scheme", "int8", "--data", str(tmp_path / "answers.jsonl")])
    assert done.exit_code == 2
    assert "--scheme int4" in " ".join(done.output.replace("│", " ").split())
    assert not (tmp_path / "out").exists()
