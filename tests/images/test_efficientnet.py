"""EfficientNet-Lite: every variant is the published network, and pictures go through it at the size that it wants."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from manifind.errors import InputError
from manifind.images.efficientnet import VARIANTS, EfficientNetFeatures, EfficientNetLite, generalised_mean, stages
from manifind.images.extractors import make_extractor

COUNTED = ("weight", "bias", "running_mean", "running_var")


def pictures(sizes, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 255, size=(*size, 3), dtype=np.uint8) for size in sizes]


def random_weights(blocks):
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
    for stage in blocks:
        for _ in range(stage.repeats):
            name, inner = f"_blocks.{number}", width * stage.expansion
            if stage.expansion > 1:
                convolution(f"{name}._expand_conv", f"{name}._bn0", inner, width, 1)
            convolution(f"{name}._depthwise_conv", f"{name}._bn1", inner, 1, stage.kernel)
            convolution(f"{name}._project_conv", f"{name}._bn2", stage.width, inner, 1)
            number, width = number + 1, stage.width
    convolution("_conv_head", "_bn1", 1280, width, 1)
    return state


@pytest.fixture(scope="module", params=VARIANTS)
def variant(request):
    return VARIANTS[request.param]


@pytest.fixture(scope="module")
def weights(variant):
    return random_weights(stages(variant))


@pytest.fixture(scope="module")
def weights_file(weights, tmp_path_factory):
    file = tmp_path_factory.mktemp("weights") / "w.pth"
    torch.save(weights, file)
    return file


def same_padding(x, kernel, stride):
    """As TensorFlow pads, by its definition."""
    pads = []
    for size in (x.shape[-1], x.shape[-2]):
        out = int(np.ceil(size / stride))
        total = max((out - 1) * stride + kernel - size, 0)
        pads += [total // 2, total - total // 2]
    return functional.pad(x, pads)


def slowly(state, blocks, x):
    """The network with its normalisations apart, a layer at a time."""

    def step(x, name, norm, stride=1, bounded=True):
        w = state[f"{name}.weight"]
        x = same_padding(x, w.shape[-1], stride)
        x = functional.conv2d(x, w, stride=stride, groups=w.shape[0] if w.shape[1] == 1 else 1)
        parts = [state[f"{norm}.{part}"] for part in ("running_mean", "running_var", "weight", "bias")]
        x = functional.batch_norm(x, *parts, eps=1e-3)
        return x.clamp(0, 6) if bounded else x

    x = step(x, "_conv_stem", "_bn0", 2)
    number = 0
    for stage in blocks:
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
def test_the_network_is_its_layers_one_after_the_other(variant, weights, size):
    x = torch.randn(2, 3, *size, generator=torch.Generator().manual_seed(1))
    found = EfficientNetLite(weights, stages(variant))(x)
    assert found.shape == (2, 1280, -(-size[0] // 32), -(-size[1] // 32))
    torch.testing.assert_close(found, slowly(weights, stages(variant), x), atol=1e-4, rtol=1e-4)


def test_the_published_weights_have_the_names_and_shapes_of_the_random_ones(variant, weights):
    pytest.importorskip(variant.package)
    published = torch.load(variant.weights_file(), weights_only=True)
    layers = {name for name in published if name.endswith(COUNTED) and not name.startswith("_fc.")}
    assert {name: published[name].shape for name in layers} == {name: one.shape for name, one in weights.items()}


def test_the_larger_variants_are_deeper_and_the_largest_is_wider():
    assert [[stage.repeats for stage in stages(one)] for one in VARIANTS.values()] == [
        [1, 2, 2, 3, 3, 4, 1],
        [1, 3, 3, 4, 4, 5, 1],
        [1, 3, 3, 4, 4, 5, 1],
    ]
    assert [[stage.width for stage in stages(one)] for one in VARIANTS.values()] == [
        [16, 24, 40, 80, 112, 192, 320],
        [16, 24, 40, 80, 112, 192, 320],
        [16, 24, 48, 88, 120, 208, 352],
    ]


@pytest.mark.parametrize("width", [0.3, 0.5, 0.85, 1.3, 1.45])
def test_a_width_is_a_multiple_of_eight_and_at_most_a_tenth_too_small(width):
    exact = [stage.width * width for stage in stages(VARIANTS["lite0"])]
    rounded = [stage.width for stage in stages(VARIANTS["lite0"]._replace(width=width))]
    for wanted, found in zip(exact, rounded, strict=True):
        assert found % 8 == 0
        assert 0.9 * wanted <= found < wanted + 8


def test_weights_of_something_else_are_refused(variant, weights):
    less = {name: w for name, w in weights.items() if not name.startswith("_blocks.7._project")}
    with pytest.raises(InputError, match=r"_blocks\.7\._project_conv"):
        EfficientNetLite(less, stages(variant))


def test_weights_of_another_variant_are_refused(variant, weights):
    for other in VARIANTS.values():
        if other != variant:
            with pytest.raises(InputError, match=r"_blocks\.\d+ of these weights is \d+ channels wide; expected \d+"):
                EfficientNetLite(weights, stages(other))


def test_the_generalised_mean_lies_between_the_mean_and_the_maximum():
    x = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    assert generalised_mean(x, 1.0).item() == pytest.approx(2.5)
    assert generalised_mean(x, 3.0).item() == pytest.approx((100 / 4) ** (1 / 3))
    assert generalised_mean(x, 40.0).item() == pytest.approx(4.0, rel=0.05)


def test_a_small_picture_is_enlarged_to_what_the_network_was_trained_at(variant, weights, weights_file):
    described = EfficientNetFeatures(weights_file, 3.0, (1.0,), 64, stages(variant))
    whole = EfficientNetFeatures(weights_file, 3.0, (1.0,), 1, stages(variant))
    (small,) = pictures([(24, 32)])
    x = torch.from_numpy(small).permute(2, 0, 1)[None].float()
    larger = functional.interpolate(x, size=(48, 64), mode="bilinear", antialias=True)
    with torch.inference_mode():
        expected = generalised_mean(EfficientNetLite(weights, stages(variant))((larger - 127) / 128), 3.0)
    np.testing.assert_allclose(described([small])[0], functional.normalize(expected)[0].numpy(), atol=1e-5)
    (large,) = pictures([(80, 70)])
    np.testing.assert_array_equal(described([large]), whole([large]))


def test_a_picture_at_several_scales_is_the_sum_of_its_descriptors_at_each(variant, weights_file):
    asked = pictures([(96, 64), (64, 96)])
    one, half, both = (
        EfficientNetFeatures(weights_file, 3.0, scales, 1, stages(variant))(asked)
        for scales in ((1.0,), (0.5,), (1.0, 0.5))
    )
    added = one + half
    np.testing.assert_allclose(both, added / np.linalg.norm(added, axis=1, keepdims=True), atol=1e-5)


def test_without_stages_the_weights_are_taken_for_those_of_lite0(tmp_path):
    blocks, file = stages(VARIANTS["lite0"]), tmp_path / "w.pth"
    torch.save(random_weights(blocks), file)
    asked = pictures([(40, 60)])
    np.testing.assert_array_equal(
        EfficientNetFeatures(file, 3.0, (1.0,), 64)(asked), EfficientNetFeatures(file, 3.0, (1.0,), 64, blocks)(asked)
    )


@pytest.mark.parametrize("name", VARIANTS)
def test_a_network_that_comes_along_describes_one_or_many_alike(name):
    pytest.importorskip(VARIANTS[name].package)
    extractor = make_extractor(f"efficientnet-{name}")
    asked = pictures([(40, 60), (60, 40), (40, 60), (20, 10)])
    together = extractor(asked)
    assert together.shape == (4, 1280)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    for picture, row in zip(asked, together, strict=True):
        np.testing.assert_allclose(extractor([picture])[0], row, atol=1e-5)
    several = make_extractor(f"efficientnet-{name}", multi_scale=True)
    assert several.identity != extractor.identity
    assert np.abs(several(asked) - together).max() > 1e-3


def test_convolutions_are_computed_with_all_digits_whatever_the_program_allows(weights_file, variant, monkeypatch):
    allowed, compute = [], EfficientNetLite.__call__

    def watched(network, x):
        allowed.append(torch.backends.cudnn.allow_tf32)
        return compute(network, x)

    monkeypatch.setattr(EfficientNetLite, "__call__", watched)
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    EfficientNetFeatures(weights_file, 3.0, (1.0,), 1, stages(variant))(pictures([(32, 32)]))
    assert allowed == [False]
    assert torch.backends.cudnn.allow_tf32


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")
def test_a_gpu_describes_as_a_cpu_does(variant, weights_file, monkeypatch):
    asked = pictures([(40, 60), (224, 160)])
    on_gpu = EfficientNetFeatures(weights_file, 3.0, (1.0, 0.5), 64, stages(variant))(asked)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    on_cpu = EfficientNetFeatures(weights_file, 3.0, (1.0, 0.5), 64, stages(variant))(asked)
    np.testing.assert_allclose(on_gpu, on_cpu, atol=1e-4)
