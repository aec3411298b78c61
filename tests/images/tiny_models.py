"""Tiny real models, made by the libraries themselves and saved to folders and files."""

import numpy as np
import pytest


def words(model_max_length, pad="<pad>"):
    """A tokenizer of a few words, in the layout of the hub."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    names = [pad, "<unk>", "<s>", "</s>", "red", "green", "blue", "boat", "at", "night", "house", "a", "photo", "of"]
    tokenizer = Tokenizer(models.WordLevel({name: at for at, name in enumerate(names)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 2), ("</s>", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=pad, unk_token="<unk>", bos_token="<s>", eos_token="</s>",
        model_max_length=model_max_length,
    )  # fmt: skip


TOWER = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
PICTURE = {"image_size": 32, "patch_size": 8}


def save_clip(folder, seed=0):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    torch.manual_seed(seed)
    text = {
        **TOWER,
        "vocab_size": 14,
        "max_position_embeddings": 12,
        "bos_token_id": 2,
        "eos_token_id": 3,
        "pad_token_id": 0,
    }
    config = transformers.CLIPConfig(text_config=text, vision_config={**TOWER, **PICTURE}, projection_dim=12)
    transformers.CLIPModel(config).save_pretrained(folder)
    transformers.CLIPImageProcessorPil(
        size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}
    ).save_pretrained(folder)
    words(12).save_pretrained(folder)
    return folder


def save_siglip(folder, seed=0):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    torch.manual_seed(seed)
    text = {**TOWER, "vocab_size": 14, "max_position_embeddings": 16, "projection_size": 16}
    config = transformers.SiglipConfig(text_config=text, vision_config={**TOWER, **PICTURE})
    transformers.SiglipModel(config).save_pretrained(folder)
    transformers.SiglipImageProcessorPil(size={"height": 32, "width": 32}).save_pretrained(folder)
    words(16).save_pretrained(folder)
    return folder


def save_dinov2(folder, seed=0):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    torch.manual_seed(seed)
    config = transformers.Dinov2Config(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, image_size=32, patch_size=8
    )
    transformers.Dinov2Model(config).save_pretrained(folder)
    transformers.BitImageProcessorPil(
        size={"shortest_edge": 36}, crop_size={"height": 32, "width": 32}
    ).save_pretrained(folder)
    return folder


def save_vision(folder, family, seed=0):
    """A ViT, a ConvNeXt or a DINOv3, with the processor of a ViT."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    torch.manual_seed(seed)
    small = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32, **PICTURE}
    config, model = {
        "vit": lambda: (transformers.ViTConfig(**small), transformers.ViTForImageClassification),
        "convnext": lambda: (
            transformers.ConvNextConfig(hidden_sizes=[4, 8, 12, 16], depths=[1, 1, 1, 1]),
            transformers.ConvNextModel,
        ),
        "dinov3_vit": lambda: (transformers.DINOv3ViTConfig(**small), transformers.DINOv3ViTModel),
        "dinov2_with_registers": lambda: (
            transformers.Dinov2WithRegistersConfig(**small),
            transformers.Dinov2WithRegistersModel,
        ),
    }[family]()
    model(config).save_pretrained(folder)
    transformers.ViTImageProcessorPil(size={"height": 32, "width": 32}).save_pretrained(folder)
    return folder


def pictures(n=3, size=(40, 30), seed=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 255, size=(*size, 3), dtype=np.uint8) for _ in range(n)]
