"""The package as `pip install` would bring it: a wheel, built here, with each extra in an environment of its own."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile

import pytest

from project import ROOT

pytestmark = pytest.mark.wheel  # each environment installs torch: minutes, so `make test-all`

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
CONSTRAINTS = ROOT / "constraints.txt"

FIT = """
import sys, numpy as np, manifind
X = np.random.default_rng(0).normal(size=(80, 8))
model = manifind.GradNet(n_neighbors=5, layers=(16, 8), max_steps=3, guard=False, random_state=0).fit(X)
assert (model.search(k=1).ids[:, 0] == np.arange(80)).all()
model.save("x.manifind")
assert manifind.__file__.startswith(sys.prefix), manifind.__file__
"""

# What each extra is for, as a program that fails without it.
USES = {
    "parquet": """
import manifind
manifind.load("x.manifind").export("x.parquet", "parquet")
assert manifind.read_vectors("x.parquet").rows.shape[0] == 80
""",
    "pandas": """
import manifind
assert len(manifind.load("x.manifind").search_ids([3], k=2).to_pandas()) == 2
""",
    "plot": """
import matplotlib.figure
""",
    "data": """
import h5py, numpy as np, pooch, manifind
with h5py.File("x.h5", "w") as file:
    file["X"] = np.eye(3)
assert manifind.read_vectors("x.h5").rows.shape == (3, 3)
""",
    "pictures": """
import numpy as np, manifind, subprocess, sys
from pathlib import Path
from PIL import Image
Path("pictures").mkdir()
for i, pixels in enumerate(np.random.default_rng(0).integers(0, 256, size=(30, 32, 32, 3), dtype=np.uint8)):
    Image.fromarray(pixels).save(f"pictures/{i}.png")
subprocess.run([sys.executable, "-m", "manifind", "index", "pictures", "pictures.manifind"], check=True)
assert len(manifind.load("pictures.manifind")) == 30
""",
    "onnx": """
import onnxruntime
""",
    "hf": """
import transformers
from manifind.images.extractors import make_extractor
from manifind.errors import InputError
transformers.Dinov2Model(transformers.Dinov2Config(hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
    image_size=28, patch_size=14)).save_pretrained("dino")
transformers.BitImageProcessorPil(
    size={"shortest_edge": 28}, crop_size={"height": 28, "width": 28}).save_pretrained("dino")
import numpy as np
assert make_extractor("hf:dino")([np.zeros((30, 40, 3), np.uint8)]).shape == (1, 16)
""",
    "fastembed": """
from manifind.errors import InputError
from manifind.images.extractors import make_extractor
try:
    make_extractor("fastembed:nobody/nothing")
except InputError as error:
    assert "clip-ViT-B-32-vision" in str(error)
""",
    "web": """
import manifind.server.app
""",
    "postgres": """
import subprocess, sys
address = "postgresql://nobody@127.0.0.1:1/none"  # nobody listens there
done = subprocess.run(
    [sys.executable, "-m", "manifind", "publish", "x.manifind", address], capture_output=True, text=True
)
assert done.returncode == 1 and "installed" not in done.stderr, done.stderr
""",
    "milvus": """
import pymilvus
import manifind.stores.milvus
""",
    "all": """
import fastapi, h5py, matplotlib, onnxruntime, openTSNE, pandas, PIL, pillow_heif, pooch, psycopg, pyarrow, pymilvus
""",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    run([sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(ROOT)], folder)
    (file,) = folder.glob("*.whl")
    return file


@pytest.fixture
def install(wheel, tmp_path):
    """Makes a clean environment with the wheel and its extras; gone after the test, since each takes a gigabyte."""
    environment = tmp_path / "environment"

    def make(extra=""):
        run([sys.executable, "-m", "venv", str(environment)], tmp_path)
        python = environment / "bin" / "python"
        wanted = f"{wheel}[{extra}]" if extra else str(wheel)
        run([python, "-m", "pip", "install", "-q", "-c", str(CONSTRAINTS), wanted], tmp_path)
        run([python, "-m", "pip", "check"], tmp_path)
        return python

    yield make
    shutil.rmtree(environment, ignore_errors=True)


def run(command, folder):
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_a_wheel_holds_the_package_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert "manifind/py.typed" in names
    assert {name.split("/")[0].split("-")[0] for name in names} == {"manifind"}
    files = (file for file in (ROOT / "src").rglob("*") if file.is_file() and file.suffix != ".pyc")
    assert {file.relative_to(ROOT / "src").as_posix() for file in files} <= set(names), "templates and tables, too"


def test_a_wheel_without_extras_fits_searches_and_has_its_command(install, tmp_path):
    python = install()
    run([python, "-W", "error::UserWarning", "-c", FIT], tmp_path)
    command = python.parent / "manifind"
    assert "80" in run([command, "info", "x.manifind"], tmp_path)
    assert "rank" in run([command, "search", "x.manifind", "3", "-k", "2"], tmp_path)
    torch = run([python, "-c", "from importlib.metadata import version; print(version('torch'))"], tmp_path).strip()
    pinned = re.search(r"^torch==(\S+)$", CONSTRAINTS.read_text(), re.MULTILINE)[1]
    assert torch.split("+")[0] == pinned.split("+")[0]
    for extra in ("parquet", "pandas"):
        done = subprocess.run([python, "-c", USES[extra]], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert f"manifind[{extra}]" in done.stderr


# torchvision must fit the build of torch, and there is none for the one that is pinned: these two are checked in an
# environment with ordinary builds, by scripts/check_model_libraries.py.
WITH_TORCHVISION = ("timm", "open_clip")


@pytest.mark.parametrize("extra", [name for name in EXTRAS if name not in ("test", *WITH_TORCHVISION)])
def test_a_wheel_with_an_extra_does_what_the_extra_is_for(extra, install, tmp_path):
    python = install(extra)
    run([python, "-W", "error::UserWarning", "-c", FIT], tmp_path)
    run([python, "-c", USES[extra]], tmp_path)
