"""Models of the Hugging Face hub, or of a local folder in its layout, through transformers: DINOv2, CLIP, SigLIP, ViT.

A folder is hostile until it is checked: only weights in safetensors are read, whose headers must fit their files; no
code of a repository is run; a configuration may ask for no more numbers than the weights hold.
"""

import hashlib
import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from manifind.arrays import Floats
from manifind.errors import InputError, ManifindError, needing
from manifind.files import sha256_of
from manifind.images.decode import Pixels
from manifind.images.extractors import Extractor, refuse_changed
from manifind.text import count


class Family(NamedTuple):
    """How models of one type are used. output: "projected", "class token" or "pooled". arguments: to load one."""

    output: str
    arguments: dict[str, Any] = {}  # noqa: RUF012  nobody writes to it
    pads_texts: bool = False  # to the full length, as it was trained
    attention: str = "sdpa"


_OUTPUTS = {"projected": "embedding shared with words", "class token": "class token", "pooled": "pooled output"}
_CLASS_TOKEN, _POOLED = Family("class token"), Family("pooled", attention="eager")
FAMILIES = {
    "clip": Family("projected"),
    "siglip": Family("projected", pads_texts=True),
    "siglip2": Family("projected", pads_texts=True),
    "dinov2": _CLASS_TOKEN,
    "dinov2_with_registers": _CLASS_TOKEN,
    "dinov3_vit": _CLASS_TOKEN,
    "vit": Family("class token", {"add_pooling_layer": False}),  # most published weights have no such layer
    "convnext": _POOLED,
    "convnextv2": _POOLED,
    "dinov3_convnext": _POOLED,
}
"""The types of models that are known, as `model_type` in config.json has them."""

_CONFIG, _INDEX, _WEIGHTS = "config.json", "model.safetensors.index.json", "model.safetensors"
_SETTINGS = (_CONFIG, "preprocessor_config.json", "processor_config.json", "tokenizer_config.json")
_TOKENS = (
    "tokenizer.json", "vocab.json", "merges.txt", "vocab.txt", "spiece.model", "tokenizer.model",
    "special_tokens_map.json", "added_tokens.json",
)  # fmt: skip
_WANTED = (*_SETTINGS, *_TOKENS, _WEIGHTS, _INDEX, "model-*-of-*.safetensors")
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".h5", ".msgpack")
_MOST_JSON = 64 << 20  # bytes: the largest tokenizers have half as many
_MOST_HEADER = 100 << 20  # bytes, the limit of safetensors itself
_MOST_LAYERS, _MOST_WIDTH, _MOST_SIDE = 1_000, 2_000_000, 4_096
_LEAST_LONGEST = 512
_CODE = ("auto_map", "custom_pipelines", "quantization_config")
_ATTENTION = ("attn_implementation", "_attn_implementation", "_attn_implementation_internal")
_HINT = "take a model that transformers implements itself, with weights in safetensors"


def hugging_face_extractor(name: str, longest: int | None, download: bool, expected: str | None) -> Extractor:
    """The extractor of a folder, where `name` is an absolute path, or of OWNER/NAME[@REVISION] on the hub.

    longest: of the pictures; None for twice what the model sees. download: whether the hub may be asked; if not, the
    local cache alone. expected: the digest of the files.
    """
    with needing("hf", f"hf:{name} needs transformers, which is not installed"):
        transformers: Any = import_module("transformers")
    is_folder = Path(name).is_absolute()
    folder, address = (Path(name), f"hf:{name}") if is_folder else _snapshot(name, download)
    config, n_numbers = check_folder(folder)
    digest = _digest(folder)
    refuse_changed(digest, expected, address)
    family = FAMILIES[config["model_type"]]
    with _quiet(transformers), _words(folder):
        model = _model(transformers, folder, family, n_numbers)
        processor = transformers.AutoImageProcessor.from_pretrained(folder, local_files_only=True, backend="pil")
        towers = family.output == "projected"
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True) if towers else None
    side = _check_size(processor, folder)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    seen = longest or max(_LEAST_LONGEST, 2 * side)
    where = {} if is_folder else dict(zip(("model", "revision"), name_and_revision(address), strict=True))
    identity = {"describer": "hf", **where, "weights": digest, "longest": seen}
    used = _TransformersModel(model.to(device).eval(), family, processor, tokenizer, device, folder)
    note = f"{address}: the {_OUTPUTS[family.output]} of a {config['model_type']} that sees {side} x {side} pixels"
    return Extractor(identity, seen, used.describe, (address,), used.texts if towers else None, (note,))


class _TransformersModel:
    """A loaded model with its own preprocessing."""

    def __init__(self, model: Any, family: Family, processor: Any, tokenizer: Any, device: str, folder: Path) -> None:
        self._model, self._family, self._processor = model, family, processor
        self._tokenizer, self._device, self._folder = tokenizer, device, folder

    @torch.inference_mode()
    def describe(self, pictures: Sequence[Pixels]) -> Floats:
        """(m, d) unit rows for two towers, else the output as it is."""
        images = [Image.fromarray(picture) for picture in pictures]
        with _words(self._folder):
            inputs = self._on_device(self._processor(images=images, return_tensors="pt"))
            if self._family.output == "projected":
                return _rows(self._model.get_image_features(**inputs).pooler_output, scaled=True)
            found = self._model(**inputs)
            is_token = self._family.output == "class token"
            return _rows(found.last_hidden_state[:, 0] if is_token else found.pooler_output, scaled=False)

    @torch.inference_mode()
    def texts(self, texts: Sequence[str]) -> Floats:
        """(m, d) unit rows, in the space of the pictures."""
        most = int(self._model.config.text_config.max_position_embeddings)
        with _words(self._folder):
            for text in texts:
                length = len(self._tokenizer(text, truncation=False, verbose=False)["input_ids"])
                if length > most:
                    raise InputError(f"a text of {length} tokens; the model reads {most}", "use fewer words")
            if self._family.pads_texts:  # such models were trained without a mask
                padded = self._tokenizer(list(texts), padding="max_length", max_length=most, return_tensors="pt")
                inputs = {"input_ids": padded["input_ids"]}
            else:
                inputs = self._tokenizer(list(texts), padding=True, return_tensors="pt")
            return _rows(self._model.get_text_features(**self._on_device(inputs)).pooler_output, scaled=True)

    def _on_device(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value.to(self._device) for name, value in inputs.items()}


def _rows(found: Tensor, scaled: bool) -> Floats:
    rows = found.flatten(1).float()
    return np.asarray((torch.nn.functional.normalize(rows) if scaled else rows).cpu().numpy(), dtype=np.float32)


def name_and_revision(address: str) -> tuple[str, str]:
    """OWNER/NAME and the revision in an address of the hub; the latter may be empty."""
    name, _, revision = address.removeprefix("hf:").partition("@")
    return name, revision


def _snapshot(name: str, download: bool) -> tuple[Path, str]:
    """The folder of a model in the local cache, and its address with the revision that it has there."""
    from huggingface_hub import snapshot_download

    repository, revision = name_and_revision(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = snapshot_download(
                repository, revision=revision or None, allow_patterns=list(_WANTED), local_files_only=not download
            )
        except Exception as error:  # the hub has a dozen kinds
            place = "cannot be downloaded, and is not" if download else "is not"
            hint = f"hf download {repository}{f' --revision {revision}' if revision else ''}"
            reason = f": {str(error).splitlines()[0][:200]}" if download else "; searching never downloads"
            raise InputError(f"hf:{name} {place} in the local cache{reason}", hint) from error
    folder = Path(found)
    return folder, f"hf:{repository}@{folder.name}"  # the cache has a folder for each revision


def check_folder(folder: Path) -> tuple[dict[str, Any], int]:
    """The configuration, and how many numbers the weights hold; refused in words where anything is suspicious."""
    if not (folder / _CONFIG).is_file():
        raise InputError(f"{folder} has no {_CONFIG}", "give a folder that save_pretrained has written")
    settings = {name: _read_json(folder / name) for name in _SETTINGS if (folder / name).is_file()}
    for name, values in settings.items():
        _check_values(folder / name, values)
    config = settings[_CONFIG]
    if config.get("model_type") not in FAMILIES:
        raise InputError(
            f"{folder / _CONFIG} is of a model of type {str(config.get('model_type'))[:60]!r}; expected one of "
            f"{', '.join(FAMILIES)}",
            "another model can be used by a function of yours: --extractor FILE.py:NAME",
        )
    return config, sum(_count_numbers(file) for file in _weights(folder))


def _weights(folder: Path) -> list[Path]:
    """The files of the weights, all of them safetensors in the folder itself."""
    if (folder / _WEIGHTS).is_file():
        return [folder / _WEIGHTS]
    if not (folder / _INDEX).is_file():
        others = sorted(file.name for file in folder.iterdir() if file.suffix in _PICKLES)
        found = f"{others[0]}, which can run code when it is read" if others else "none"
        raise InputError(f"{folder} has no weights in safetensors; there is {found}", _HINT)
    named = _read_json(folder / _INDEX).get("weight_map")
    names = sorted({str(name) for name in named.values()}) if isinstance(named, dict) else []
    for name in names:
        if Path(name).name != name or not name.endswith(".safetensors") or not (folder / name).is_file():
            raise InputError(f"{folder / _INDEX} names {name[:200]!r}, which is no file of weights beside it", _HINT)
    if not names:
        raise InputError(f"{folder / _INDEX} names no weights", "download the model again")
    return [folder / name for name in names]


def _count_numbers(file: Path) -> int:
    """How many numbers a file of safetensors holds; refused where its header and its length do not agree."""
    size, cut = file.stat().st_size, InputError(f"{file} is damaged or cut short", "download or save the model again")
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if size < 8 or not 2 <= length <= min(size - 8, _MOST_HEADER):
            raise cut
        try:
            header = json.loads(stream.read(length))
            tensors = [value for name, value in header.items() if name != "__metadata__"]
            end = max(int(one["data_offsets"][1]) for one in tensors)
            numbers = sum(int(np.prod([int(extent) for extent in one["shape"]], dtype=object)) for one in tensors)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
            raise cut from error
    if end != size - 8 - length:
        raise cut
    return numbers


def _read_json(file: Path) -> dict[str, Any]:
    try:
        if file.stat().st_size > _MOST_JSON:
            raise ValueError(f"{file.stat().st_size:,} bytes")
        found = json.loads(file.read_bytes())
        if not isinstance(found, dict):
            raise ValueError("no object")
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{file} cannot be read as JSON: {str(error)[:200]}", "download the model again") from error
    return found


def _check_values(file: Path, values: Any, name: str = "") -> None:
    """Refuse settings that run code, or that ask for more than any model has."""
    if isinstance(values, dict):
        for key, value in values.items():
            if key in _CODE and value:
                raise InputError(f"{file} asks for code or a format of its own by {key!r}, which is not run", _HINT)
            if key in _ATTENTION and value not in (None, "eager", "sdpa"):
                raise InputError(f"{file} asks for an attention of its own, {str(value)[:60]!r}", _HINT)
            _check_values(file, value, str(key))
    elif isinstance(values, list):
        for value in values:
            _check_values(file, value, name)
    elif isinstance(values, int | float) and not isinstance(values, bool):
        most = _MOST_LAYERS if "layers" in name or name == "depths" else _MOST_WIDTH
        is_limit = name == "model_max_length" or name.endswith("token_id")  # huge where there is none
        if abs(values) > most and not is_limit and isinstance(values, int):
            raise InputError(f"{file} claims {name} = {values:,}, more than any model has", "check where it comes from")


def _digest(folder: Path) -> str:
    """Of all files that descriptors depend on."""
    names = [name for name in (*_SETTINGS, *_TOKENS) if (folder / name).is_file()]
    files = sorted([*(folder / name for name in names), *_weights(folder)])
    return hashlib.sha256("".join(f"{sha256_of(file)} {file.name}\n" for file in files).encode()).hexdigest()


def _model(transformers: Any, folder: Path, family: Family, n_numbers: int) -> Any:
    """The model with all of its weights from the files."""
    config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    with torch.device("meta"):  # which allocates nothing
        empty = transformers.AutoModel.from_config(config, **family.arguments, attn_implementation=family.attention)
    wanted = sum(one.numel() for one in empty.parameters())
    if wanted > n_numbers:
        raise InputError(
            f"{folder / _CONFIG} asks for {wanted:,} numbers, and the weights hold {n_numbers:,}",
            "download the model again: its configuration and its weights are not of one model",
        )
    model, info = transformers.AutoModel.from_pretrained(
        folder,
        config=config,
        local_files_only=True,
        trust_remote_code=False,
        use_safetensors=True,
        dtype=torch.float32,
        attn_implementation=family.attention,
        output_loading_info=True,
        **family.arguments,
    )
    for kind in ("missing_keys", "mismatched_keys"):
        if lacking := sorted(map(str, info.get(kind) or ())):
            problem = f"the weights in {folder} lack {count(len(lacking), 'tensor')} of the model, such as {lacking[0]}"
            raise InputError(
                problem, "download the model again: its configuration and its weights are not of one model"
            )
    return model


def _check_size(processor: Any, folder: Path) -> int:
    """The larger side of the pictures that the model sees."""
    sides = []
    for name in ("size", "crop_size"):
        found = getattr(processor, name, None)
        values = [value for value in dict(found or {}).values() if isinstance(value, int)]
        sides += values
    side = max(sides, default=224)
    if not 1 <= side <= _MOST_SIDE:
        raise InputError(f"{folder} wants pictures of {side:,} pixels a side; expected at most {_MOST_SIDE:,}")
    return side


@contextmanager
def _words(folder: Path) -> Iterator[None]:
    """Whatever transformers raises on a folder that is not as it should be, as an error of ours."""
    try:
        yield
    except (ManifindError, KeyboardInterrupt):
        raise
    except Exception as error:
        first = (str(error) or type(error).__name__).strip().splitlines()[0][:300]
        raise InputError(
            f"{folder} cannot be used by transformers: {first}", "download or save the model again"
        ) from error


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Within this transformers writes nothing to the terminal: the library is silent, and errors are raised."""
    logging = transformers.utils.logging
    level, restore = logging.get_verbosity(), _bars(logging)
    logging.set_verbosity_error()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(level)
        restore()


def _bars(logging: Any) -> Callable[[], None]:
    """Switch its progress bars off; what is returned switches them on again where they were."""
    were_on = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    return logging.enable_progress_bar if were_on else (lambda: None)
