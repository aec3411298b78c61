"""Models in the layout of the hub: the right output of each family, offline, and hostile folders refused in words."""

import json
import pickle
import struct

import numpy as np
import pytest

from images.tiny_models import pictures, save_clip, save_dinov2, save_siglip, save_vision
from manifind.errors import InputError
from manifind.images.extractors import make_extractor

transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    return save_clip(tmp_path_factory.mktemp("clip"))


def expected_pixels(folder, asked):
    """As the model's own processor has them."""
    from PIL import Image

    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    return processor(images=[Image.fromarray(one) for one in asked], return_tensors="pt")["pixel_values"]


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_two_towers_are_described_by_their_projected_embeddings(clip):
    extractor, model = make_extractor(f"hf:{clip}"), transformers.CLIPModel.from_pretrained(clip).eval()
    asked = pictures(3) + pictures(1, (20, 64), seed=1)
    with torch.inference_mode():
        found = model.visual_projection(model.vision_model(expected_pixels(clip, asked)).pooler_output)
    np.testing.assert_allclose(extractor(asked), unit(found.numpy()), atol=1e-5)


def test_words_are_described_in_the_same_space_one_or_many_alike(clip):
    extractor = make_extractor(f"hf:{clip}")
    rows = extractor.describe_texts(["a red boat", "night"])
    assert rows.shape == (2, 12)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(extractor.describe_texts(["night"])[0], rows[1], atol=1e-5)
    assert np.abs(rows[0] - rows[1]).max() > 1e-3


def test_siglip_reads_texts_padded_to_the_full_length(tmp_path):
    folder = save_siglip(tmp_path)
    extractor, model = make_extractor(f"hf:{folder}"), transformers.SiglipModel.from_pretrained(folder).eval()
    ids = transformers.AutoTokenizer.from_pretrained(folder)(["a boat"], padding="max_length", max_length=16)[
        "input_ids"
    ]
    with torch.inference_mode():
        found = model.text_model(input_ids=torch.tensor(ids)).pooler_output.numpy()
    np.testing.assert_allclose(extractor.describe_texts(["a boat"]), unit(found), atol=1e-5)
    assert extractor(pictures(2)).shape == (2, 16)


def test_dinov2_is_described_by_its_class_token(tmp_path):
    folder = save_dinov2(tmp_path)
    extractor, model = make_extractor(f"hf:{folder}"), transformers.Dinov2Model.from_pretrained(folder).eval()
    asked = pictures(2)
    with torch.inference_mode():
        found = model(expected_pixels(folder, asked)).last_hidden_state[:, 0].numpy()
    np.testing.assert_allclose(extractor(asked), found, atol=1e-5)
    with pytest.raises(InputError, match=r"does not understand words.*hf:openai/clip"):
        extractor.describe_texts(["a boat"])


@pytest.mark.parametrize("family", ["vit", "convnext", "dinov3_vit", "dinov2_with_registers"])
def test_other_families_give_one_row_for_each_picture(tmp_path, family):
    extractor = make_extractor(f"hf:{save_vision(tmp_path, family)}")
    asked = pictures(3)
    rows = extractor(asked)
    assert rows.shape == (3, 16)
    np.testing.assert_allclose(extractor(asked[1:2])[0], rows[1], atol=1e-5)
    assert np.abs(rows[0] - rows[1]).max() > 1e-4


def test_a_text_that_is_too_long_or_empty_is_refused(clip):
    extractor = make_extractor(f"hf:{clip}")
    with pytest.raises(InputError, match="a text of 22 tokens; the model reads 12"):
        extractor.describe_texts(["boat " * 20])
    with pytest.raises(InputError, match="is empty"):
        extractor.describe_texts(["  "])


def test_a_name_that_is_not_in_the_cache_is_said_so(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match=r"hf:nobody/nothing cannot be downloaded.*hf download nobody/nothing"):
        make_extractor("hf:nobody/nothing")


# A folder from elsewhere.


def config_of(folder):
    return json.loads((folder / "config.json").read_text())


def set_config(folder, name="config.json", **values):
    found = json.loads((folder / name).read_text()) | values
    (folder / name).write_text(json.dumps(found))


class Bomb:
    def __reduce__(self):
        return (print, ("executed",))


def with_a_pickle(folder):
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb()))


def cut_short(folder):
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])


def header_of_nonsense(folder):
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", 1 << 60) + b"{}")


def empty_weights(folder):
    (folder / "model.safetensors").write_bytes(b"")


def other_weights(folder):
    save_dinov2(folder / "other")
    (folder / "other" / "model.safetensors").rename(folder / "model.safetensors")


def index_elsewhere(folder):
    (folder / "model.safetensors").unlink()
    index = {"weight_map": {"x": "../../etc/model.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def tower(folder, **values):
    set_config(folder, vision_config=config_of(folder)["vision_config"] | values)


HOSTILE = {
    "a pickle": (with_a_pickle, "pytorch_model.bin, which can run code"),
    "code of its own": (lambda f: set_config(f, auto_map={"AutoModel": "code.Model"}), "asks for code.*auto_map"),
    "code of a processor": (
        lambda f: set_config(f, "preprocessor_config.json", auto_map={"AutoImageProcessor": "code.P"}),
        "asks for code",
    ),
    "code of a tokenizer": (
        lambda f: set_config(f, "tokenizer_config.json", auto_map={"AutoTokenizer": ["code.T", None]}),
        "asks for code",
    ),
    "a kernel of its own": (lambda f: set_config(f, attn_implementation="evil/kernel"), "an attention of its own"),
    "weights cut short": (cut_short, "damaged or cut short"),
    "a header of nonsense": (header_of_nonsense, "damaged or cut short"),
    "no weights": (empty_weights, "damaged or cut short"),
    "weights of another model": (other_weights, "numbers, and the weights hold|lack .* of the model"),
    "weights elsewhere": (index_elsewhere, "no file of weights beside it"),
    "a huge width": (lambda f: tower(f, hidden_size=10**9), "claims hidden_size = 1,000,000,000"),
    "too many layers": (lambda f: tower(f, num_hidden_layers=10**7), "claims num_hidden_layers"),
    "a width beyond the weights": (lambda f: tower(f, intermediate_size=10**6), "numbers, and the weights hold"),
    "huge pictures": (
        lambda f: set_config(f, "preprocessor_config.json", crop_size={"height": 10**6, "width": 10**6}),
        "wants pictures of 1,000,000 pixels",
    ),
    "no type": (lambda f: set_config(f, model_type="rnn"), "of type 'rnn'; expected one of clip"),
    "a list for a configuration": (lambda f: (f / "config.json").write_text("[]"), "cannot be read as JSON"),
    "deep nesting": (lambda f: (f / "config.json").write_text("[" * 100_000), "cannot be read as JSON"),
    "no configuration": (lambda f: (f / "config.json").unlink(), "has no config.json"),
    "a processor of nonsense": (
        lambda f: set_config(f, "preprocessor_config.json", image_processor_type="Nothing"),
        "cannot be used by transformers",
    ),
    "a tokenizer of nonsense": (lambda f: (f / "tokenizer.json").write_text("{}"), "cannot be used by transformers"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_folder_is_refused_in_words(tmp_path, what, capfd):
    folder = save_clip(tmp_path)
    spoil, words = HOSTILE[what]
    spoil(folder)
    capfd.readouterr()
    with pytest.raises(InputError, match=words):
        make_extractor(f"hf:{folder}")
    assert "executed" not in "".join(capfd.readouterr())
