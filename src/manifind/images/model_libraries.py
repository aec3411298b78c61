"""Models of other libraries by name: fastembed (ONNX, without torch), timm and open_clip."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from manifind.arrays import Floats
from manifind.errors import InputError, ManifindError, needing
from manifind.files import sha256_of
from manifind.images.decode import Pixels
from manifind.images.extractors import Extractor, refuse_changed

_MODEL_FILES = (".onnx", ".json", ".txt", ".onnx_data")


def fastembed_extractor(name: str, longest: int, download: bool, expected: str | None) -> Extractor:
    """The extractor of NAME, or of NAME@FOLDER, where the folder holds the files of that model."""
    with needing("fastembed", f"fastembed:{name} needs fastembed, which is not installed"):
        fastembed: Any = import_module("fastembed")
    model_name, _, folder = name.partition("@")
    known = [one["model"] for one in fastembed.ImageEmbedding.list_supported_models()]
    if model_name.lower() not in map(str.lower, known):
        raise InputError(f"fastembed has no model {model_name[:200]!r} for pictures", f"take one of {', '.join(known)}")
    place: dict[str, Any] = {"specific_model_path": folder} if folder else {"local_files_only": not download}
    with _words(f"fastembed:{name}", f'python -c "import fastembed; fastembed.ImageEmbedding({model_name!r})"'):
        model = fastembed.ImageEmbedding(model_name, lazy_load=True, **place)
        files = sorted(one for one in Path(model.model._model_dir).rglob("*") if one.suffix in _MODEL_FILES)
        if not any(file.suffix == ".onnx" for file in files):
            raise InputError(f"{folder} has no .onnx file", "give the folder of a model that fastembed has downloaded")
        digest = hashlib.sha256("".join(f"{sha256_of(file)} {file.name}\n" for file in files).encode()).hexdigest()
        refuse_changed(digest, expected, f"fastembed:{name}")
        model.model.load_onnx_model()

    def describe(pictures: Sequence[Pixels]) -> Floats:
        with _words(f"fastembed:{name}", "check the files of the model"):
            found = model.embed([Image.fromarray(picture) for picture in pictures], batch_size=len(pictures))
            return np.stack(list(found)).astype(np.float32)

    identity = {"describer": "fastembed", "model": model_name, "weights": digest, "longest": longest}
    return Extractor(identity, longest, describe, (f"fastembed:{name}",))


def timm_extractor(
    name: str, longest: int, download: bool, expected: str | None, *, pretrained: bool = True
) -> Extractor:
    """The pooled features of timm's NAME, with the model's own preprocessing. pretrained: False only for checks."""
    with needing("timm", f"timm:{name} needs timm and torchvision, which are not installed"):
        timm: Any = import_module("timm")
    with _hub(download), _words(f"timm:{name}", "look it up with timm.list_pretrained()"):
        model = timm.create_model(name, pretrained=pretrained, num_classes=0).eval()
        transform = timm.data.create_transform(**timm.data.resolve_model_data_config(model))
    digest = _state_digest(model)
    refuse_changed(digest, expected, f"timm:{name}")
    identity = {"describer": "timm", "model": name, "weights": digest, "longest": longest}
    return Extractor(identity, longest, _torch_describer(model, transform, model), (f"timm:{name}",))


def open_clip_extractor(
    name: str, longest: int, download: bool, expected: str | None, *, pretrained: bool = True
) -> Extractor:
    """Both towers of open_clip's MODEL/TAG. pretrained: False only for checks."""
    with needing("open_clip", f"open_clip:{name} needs open_clip_torch and torchvision, which are not installed"):
        open_clip: Any = import_module("open_clip")
    model_name, _, tag = name.partition("/")
    if not tag:
        problem = f"open_clip:{name} names no weights; expected open_clip:MODEL/TAG"
        raise InputError(problem, "open_clip.list_pretrained() has the pairs, such as ViT-B-32/laion2b_s34b_b79k")
    with _hub(download), _words(f"open_clip:{name}", "look it up with open_clip.list_pretrained()"):
        made = open_clip.create_model_and_transforms(model_name, pretrained=tag if pretrained else None)
        model, transform, tokenizer = made[0].eval(), made[2], open_clip.get_tokenizer(model_name)
    digest = _state_digest(model)
    refuse_changed(digest, expected, f"open_clip:{name}")
    torch: Any = import_module("torch")

    def texts(words: Sequence[str]) -> Floats:
        with torch.inference_mode():
            device = next(model.parameters()).device
            found = model.encode_text(tokenizer(list(words)).to(device), normalize=True)
        return np.asarray(found.float().cpu().numpy(), dtype=np.float32)

    describe = _torch_describer(model, transform, lambda x: model.encode_image(x, normalize=True))
    identity = {"describer": "open_clip", "model": name, "weights": digest, "longest": longest}
    return Extractor(identity, longest, describe, (f"open_clip:{name}",), texts)


def _torch_describer(
    model: Any, transform: Callable[[Image.Image], Any], encode: Callable[[Any], Any]
) -> Callable[[Sequence[Pixels]], Floats]:
    torch: Any = import_module("torch")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model.to(device)

    def describe(pictures: Sequence[Pixels]) -> Floats:
        with torch.inference_mode():
            batch = torch.stack([transform(Image.fromarray(picture)) for picture in pictures])
            return np.asarray(encode(batch.to(device)).float().cpu().numpy(), dtype=np.float32)

    return describe


def _state_digest(model: Any) -> str:
    """Of the weights as they were loaded, wherever their file is."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().float().numpy().tobytes())
    return digest.hexdigest()


@contextmanager
def _hub(download: bool) -> Iterator[None]:
    """Within this the hub is not asked, unless something may be downloaded."""
    constants: Any = import_module("huggingface_hub").constants
    before, constants.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE, constants.HF_HUB_OFFLINE or not download
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


@contextmanager
def _words(what: str, hint: str) -> Iterator[None]:
    """Whatever a library raises, as an error of ours."""
    try:
        yield
    except ManifindError:
        raise
    except Exception as error:
        first = (str(error) or type(error).__name__).strip().splitlines()[0][:300]
        raise InputError(f"{what} cannot be loaded: {first}", hint) from error
