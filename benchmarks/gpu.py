"""The GPU in one call: is it right, how long do steps and fits take, and how near is that to what the hardware can do?

Prints one JSON line. Needs torch with CUDA, Triton, SciPy and scikit-learn; faiss is not needed.
Run from the repository: PYTHONPATH=src python benchmarks/gpu.py [PART...]; PARTS below has them.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from landmark_cloud import make_landmark_cloud

from manifind.evaluation.protocols import mean_average_precision
from manifind.graph.manifold import Manifold, build_manifold
from manifind.index.fit_context import FitContext
from manifind.index.gpu import GpuEngine, find_memory_budget
from manifind.model.estimator import GradNet
from manifind.model.trainer import Trainer
from manifind.settings import PAPER, GradNetSettings

GPU = torch.device("cuda")
N, D = 5063, 2048
_PICTURES, _BATCH = 1024, 32
_OF_SETS: dict[str, dict[str, Any]] = {"digits": {}, "mpeg7": {"preprocess": "center"}}


def main() -> None:
    """Run the parts that were asked for, all of them where none was."""
    if not torch.cuda.is_available():
        sys.exit("torch sees no GPU here")
    found: dict[str, Any] = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
    for name in sys.argv[1:] or PARTS:
        started = time.perf_counter()
        try:
            found[name] = PARTS[name]()
        except Exception as error:  # one part must not take the others with it
            found[name] = {"error": f"{type(error).__name__}: {error}"}
        print(name, round(time.perf_counter() - started, 1), "s", found[name], flush=True)
    print(json.dumps(found))


def manifold_of(X: np.ndarray, settings: dict[str, Any]) -> Manifold:
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    context = FitContext(engine=GpuEngine(find_memory_budget("cuda", None)))
    return build_manifold(X.astype(np.float32), GradNetSettings(**settings), context)


def trainer_of(manifold: Manifold, settings: dict[str, Any], device: torch.device, seed: int = 0) -> Trainer:
    return Trainer(manifold, GradNetSettings(**settings), FitContext(seed, find_memory_budget(device.type, None)))


def check() -> dict[str, Any]:
    """Loss and gradients as on the CPU; neighbours as on the CPU; the same seed, the same losses."""
    cloud = make_landmark_cloud(3000, 256).descriptors
    manifold = manifold_of(cloud, dict(PAPER))
    settings = PAPER | {"precision": "float32", "dropout": 0.0, "max_steps": 300}
    sextets = trainer_of(manifold, settings, GPU)._sampler.draw(64)
    nodes, weights = sextets.nodes.T.copy(), (sextets.a_ij, sextets.a_kl)
    order = np.argsort(nodes.ravel(), kind="stable")
    cpu, gpu = (trainer_of(manifold, settings, device) for device in (torch.device("cpu"), GPU))
    a = cpu.whole_graph_loss(sextets, False).total
    b = gpu._loss_on_device(*(torch.from_numpy(x).to(GPU) for x in (nodes, order, *weights))).total
    a.backward()
    b.backward()
    pairs = zip(cpu.network.parameters(), gpu.network.parameters(), strict=True)
    decay = 2 * PAPER["l2"]  # which Adam adds on the GPU
    worst = max(((x.grad - (y.grad + decay * y).cpu()).norm() / x.grad.norm()).item() for x, y in pairs)
    runs = [
        [r.loss for r in trainer_of(manifold, PAPER | {"precision": "float32", "max_steps": 300}, GPU).steps()]
        for _ in range(2)
    ]
    slow = [r.loss for r in trainer_of(manifold, PAPER | {"max_steps": 300}, torch.device("cpu")).steps()]
    return {
        "loss_difference": abs(a.item() - b.item()) / abs(a.item()),
        "gradient_difference": worst,
        "same_seed_same_losses": runs[0] == runs[1],
        "last_losses_gpu_cpu": [float(np.mean(runs[0][-50:])), float(np.mean(slow[-50:]))],
    }


def paper() -> dict[str, Any]:
    """A step with the paper's settings at 5,063 x 2,048, in both precisions, and seconds of all 24,000 steps."""
    started = time.perf_counter()
    manifold = manifold_of(make_landmark_cloud(N, D).descriptors, dict(PAPER))
    told: dict[str, Any] = {"graph_seconds": time.perf_counter() - started}
    for name, settings in (("tf32", PAPER | {"precision": "float32", "max_steps": 2048}), ("bfloat16", PAPER)):
        trainer, times = trainer_of(manifold, settings, GPU), []
        started = time.perf_counter()
        for report in trainer.steps():
            if report.step % 256 == 0:
                times.append(time.perf_counter() - started)
        told[f"step_ms_{name}"] = float(np.median(np.diff(times)) / 256 * 1000)
    told |= {"steps": len(trainer.curve), "training_seconds": time.perf_counter() - started}
    return told | {"peak_GB": torch.cuda.max_memory_allocated() / 1e9}


def default() -> dict[str, Any]:
    """Seconds of a default fit at 105,000 x 2,048, the graph included."""
    X = make_landmark_cloud(105_000, 2048).descriptors
    GradNet(random_state=0, max_steps=2).fit(X[:2000])  # libraries and kernels are loaded
    stages: dict[str, float] = {}
    started = last = time.perf_counter()

    def heard(progress: Any) -> None:
        nonlocal last
        now = time.perf_counter()
        stages[progress.stage] = stages.get(progress.stage, 0.0) + now - last
        last = now

    model = GradNet(random_state=0).fit(X, listener=heard)
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "stages": stages, "steps": model.info_["steps"], "edges": model.info_["edges"]}


def scores() -> dict[str, Any]:
    """Scores (mAP) of three seeds: on the GPU and on the CPU of the same machine, and in both precisions of the GPU."""
    from sklearn.datasets import load_digits

    sets = {"digits": load_digits(return_X_y=True)}
    file = Path(os.environ.get("MANIFIND_DATA", "nowhere")) / "mpeg7" / "mpeg7.npz"
    if file.exists():
        arrays = np.load(file)
        sets["mpeg7"] = arrays["efficientnet_lite0_gem"].astype(np.float32), arrays["labels"]
    kinds: dict[str, dict[str, Any]] = {
        "default, GPU": {"device": "cuda"},
        "default, CPU": {"device": "cpu"},
        "PAPER, GPU, TF32": {**PAPER, "device": "cuda", "precision": "float32"},
        "PAPER, GPU, bfloat16": {**PAPER, "device": "cuda", "precision": "bfloat16"},
    }
    return {
        f"{name}, {kind}": [_score(X, y, {**settings, **_OF_SETS[name]}, seed) for seed in range(3)]
        for name, (X, y) in sets.items()
        for kind, settings in kinds.items()
    }


def _score(X: np.ndarray, y: np.ndarray, settings: dict[str, Any], seed: int) -> float:
    model = GradNet(**settings, random_state=seed).fit(X.astype(np.float32))
    return round(float(mean_average_precision(model.search(k=len(X)).ids, y).value), 2)


def bounded() -> dict[str, Any]:
    """Fits at 105,000 x 512 within so many GB: what torch took at most, seconds, and who is found."""
    cloud = make_landmark_cloud(105_000, 512)
    asked = np.flatnonzero(cloud.labels >= 0)[:2000]
    told: dict[str, Any] = {}
    for gigabytes in (None, 8.0, 4.0, 2.0):
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before, started = torch.cuda.memory_reserved(), time.perf_counter()
        model = GradNet(device_memory=gigabytes, random_state=0).fit(cloud.descriptors)
        seconds = time.perf_counter() - started
        held = (torch.cuda.max_memory_reserved() - before) / 1e9
        features = torch.from_numpy(model.features_).to(GPU)
        ids = (features[asked] @ features.T).topk(11, dim=1).indices[:, 1:].cpu().numpy()
        right = 100 * float((cloud.labels[ids] == cloud.labels[asked][:, None]).mean())
        told[str(gigabytes)] = {
            "held_GB": held,
            "held_before_GB": before / 1e9,
            "seconds": seconds,
            "nodes": model.info_["training_nodes"],
            "right": right,
        }
        del features
    return told


def ceiling() -> dict[str, Any]:
    """What the matrix unit and the memory reach alone, and the share that the first layer's products have of it."""
    heard = torch.randn(N, 2 * (D + 100), device=GPU)
    W = torch.randn(heard.shape[1], 1024, device=GPU)
    G = torch.randn(N, 1024, device=GPU)
    torch.backends.cuda.matmul.allow_tf32 = True
    forward, backward = _ms(lambda: heard @ W), _ms(lambda: heard.T @ G)
    square = [torch.randn(8192, 8192, device=GPU) for _ in range(2)]
    peak = 2 * 8192**3 / _ms(lambda: square[0] @ square[1]) / 1e9
    flops = 2 * N * heard.shape[1] * 1024
    big = torch.empty(1 << 30, device=GPU)
    copy = 2 * big.numel() * 4 / _ms(lambda: big.clone()) / 1e9
    return {
        "tf32_teraflops": peak, "copy_TB_per_s": copy,
        "first_layer_forward": {"ms": forward, "share": flops / forward / 1e9 / peak},
        "first_layer_backward": {"ms": backward, "share": flops / backward / 1e9 / peak},
    }  # fmt: skip


def describing() -> dict[str, Any]:
    """Pictures a second by models of real size, with random weights, on GPU and CPU, and how far these are apart."""
    import transformers

    from manifind.images.extractors import make_extractor

    rng = np.random.default_rng(0)
    pictures = [rng.integers(0, 255, size=(384, 512, 3), dtype=np.uint8) for _ in range(_PICTURES)]
    small = {"hidden_size": 384, "num_hidden_layers": 12, "num_attention_heads": 6, "patch_size": 14, "image_size": 518}
    dino = transformers.Dinov2Model(transformers.Dinov2Config(**small))
    clip = transformers.CLIPVisionConfig()  # ViT-B/32
    models = {"dinov2 small": dino, "vit base": transformers.ViTModel(transformers.ViTConfig(**_like(clip)), False)}
    found: dict[str, Any] = {}
    for name, model in models.items():
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            sizes = {"size": {"shortest_edge": 256}, "crop_size": {"height": 224, "width": 224}}
            transformers.BitImageProcessorPil(**sizes).save_pretrained(folder)
            rows, rates = {}, {}
            for device in ("cuda", "cpu"):
                with patch("torch.cuda.is_available", lambda device=device: device == "cuda"):
                    extractor = make_extractor(f"hf:{folder}")
                extractor(pictures[:_BATCH])
                some, started = pictures if device == "cuda" else pictures[:_BATCH], time.perf_counter()
                parts = [extractor(some[at : at + _BATCH]) for at in range(0, len(some), _BATCH)]
                rates[device] = round(len(some) / (time.perf_counter() - started), 1)
                rows[device] = np.concatenate(parts)[:_BATCH]
        apart = np.abs(rows["cuda"] - rows["cpu"]).max() / np.abs(rows["cpu"]).max()
        found[name] = {"pictures a second": rates, "largest difference": float(f"{apart:.1e}")}
    return found


def _like(config: Any) -> dict[str, Any]:
    names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "patch_size", "image_size")
    return {name: getattr(config, name) for name in names}


PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "check": check, "paper": paper, "default": default, "scores": scores, "bounded": bounded, "ceiling": ceiling,
    "describing": describing,
}  # fmt: skip


def _ms(work: Callable[[], Any], times: int = 30) -> float:
    for _ in range(5):
        work()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(times):
        work()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / times


if __name__ == "__main__":
    main()
