"""The package as `pip install` would bring it: a wheel, built here, in a virtual environment of its own."""

import os
import subprocess
import sys
import zipfile

import pytest

from project import ROOT

USE = """
import sys, numpy as np, manifind
X = np.random.default_rng(0).normal(size=(80, 8))
model = manifind.GradNet(n_neighbors=5, layers=(16, 8), max_steps=3, guard=False, random_state=0).fit(X)
assert (model.search(k=1).ids[:, 0] == np.arange(80)).all()
model.save("x.manifind")
assert manifind.__file__.startswith(sys.prefix), manifind.__file__
"""


@pytest.mark.slow
def test_a_wheel_built_here_works_in_a_clean_environment(tmp_path):
    run([sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(ROOT)], tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "manifind/py.typed" in names
    assert not [name for name in names if name.startswith("tests")]

    run([sys.executable, "-m", "venv", str(tmp_path / "venv")], tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    run([python, "-m", "pip", "install", "-q", "-c", str(ROOT / "constraints.txt"), str(wheel)], tmp_path)
    run([python, "-W", "error::UserWarning", "-c", USE], tmp_path)
    command = tmp_path / "venv" / "bin" / "manifind"
    assert "80" in run([command, "info", "x.manifind"], tmp_path)
    assert "rank" in run([command, "search", "x.manifind", "3", "-k", "2"], tmp_path)


def run(command, folder):
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout
