"""ONNX files: tokens, maps and vectors, NCHW and NHWC, floats and bytes, and what is said of colours and size."""

import json

import numpy as np
import pytest
from PIL import Image

from images.tiny_models import pictures
from manifind.errors import InputError
from manifind.images.extractors import make_extractor

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
helper, FLOAT, BYTES = onnx.helper, onnx.TensorProto.FLOAT, onnx.TensorProto.UINT8
MEAN, STD = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])


def save(path, nodes, shape, out, kind=FLOAT, metadata=None, constants=(), outputs=("y",)):
    infos = [helper.make_tensor_value_info(name, FLOAT, list(out)) for name in outputs]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", kind, list(shape))], infos, list(constants)
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    helper.set_model_props(model, metadata or {})
    path.write_bytes(model.SerializeToString())
    return path


def constant(name, values):
    return onnx.numpy_helper.from_array(np.asarray(values), name)


def vit(path, side=16, patch=8, registers=1, **said):
    """Patches as tokens, behind `registers` tokens that are the mean of the picture times 1, 2, ..."""
    count = (side // patch) ** 2
    nodes = [
        helper.make_node("AveragePool", ["x"], ["p"], kernel_shape=[patch, patch], strides=[patch, patch]),
        helper.make_node("Reshape", ["p", "shape"], ["r"]),
        helper.make_node("Transpose", ["r"], ["t"], perm=[0, 2, 1]),
        helper.make_node("ReduceMean", ["t"], ["m"], axes=[1], keepdims=1),
        *(helper.make_node("Mul", ["m", f"k{n}"], [f"c{n}"]) for n in range(registers)),
        helper.make_node("Concat", [*(f"c{n}" for n in range(registers)), "t"], ["y"], axis=1),
    ]
    constants = [constant("shape", [0, 3, count]), *(constant(f"k{n}", np.float32([n + 1])) for n in range(registers))]
    return save(path, nodes, ("m", 3, side, side), ("m", registers + count, 3), constants=constants, **said)


def normal(picture, size=None):
    if size is not None:
        picture = np.asarray(Image.fromarray(picture).resize(size, Image.Resampling.BICUBIC))
    return (picture / 255 - MEAN) / STD


def test_tokens_are_described_by_the_class_token_or_by_their_mean_and_which_is_said(tmp_path):
    file, asked = vit(tmp_path / "vit.onnx"), pictures(3)
    extractor = make_extractor(str(file))
    expected = np.stack([normal(one, (16, 16)).mean(axis=(0, 1)) for one in asked])
    np.testing.assert_allclose(extractor(asked), expected, atol=1e-4)
    assert "(1, 5, 3): the class token is taken; ?pool=mean" in extractor.notes[0]
    mean = make_extractor(f"{file}?pool=mean")
    assert mean.identity != extractor.identity
    np.testing.assert_allclose(mean(asked), expected, atol=1e-4)  # each token's mean is the picture's here
    registers = make_extractor(str(vit(tmp_path / "r.onnx", registers=2)))
    np.testing.assert_allclose(registers(asked), expected, atol=1e-4)


def test_a_square_of_tokens_has_no_class_token_among_them(tmp_path):
    extractor = make_extractor(str(vit(tmp_path / "vit.onnx", registers=0)))
    assert "the mean is taken" in extractor.notes[0]
    assert extractor(pictures(2)).shape == (2, 3)


def channels_last(path, kind, size=(12, 10), **said):
    nodes = [
        helper.make_node("Cast", ["x"], ["f"], to=FLOAT),
        helper.make_node("ReduceMean", ["f"], ["y"], axes=[1, 2], keepdims=0),
    ]
    return save(path, nodes, ("m", *size, 3), ("m", 3), kind, **said)


def test_bytes_with_the_channels_last_are_handed_over_as_they_are(tmp_path):
    file, asked = channels_last(tmp_path / "b.onnx", BYTES), pictures(2)
    rows = make_extractor(str(file))(asked)
    for row, one in zip(rows, asked, strict=True):
        small = np.asarray(Image.fromarray(one).resize((10, 12), Image.Resampling.BICUBIC))
        np.testing.assert_allclose(row, small.mean(axis=(0, 1)), atol=1e-3)
    with pytest.raises(InputError, match="takes bytes"):
        make_extractor(f"{file}?mean=0.5")


def test_colours_and_size_come_from_the_file_from_beside_it_or_from_options(tmp_path):
    (asked,) = pictures(1)
    metadata = {"mean": "0.5,0.5,0.5", "std": "0.25", "size": "8,6"}
    file = channels_last(tmp_path / "m.onnx", FLOAT, ("h", "w"), metadata=metadata)
    small = np.asarray(Image.fromarray(asked).resize((6, 8), Image.Resampling.BICUBIC)) / 255
    np.testing.assert_allclose(
        make_extractor(str(file))([asked])[0], ((small - 0.5) / 0.25).mean(axis=(0, 1)), atol=1e-4
    )
    sidecar = {"image_mean": [0.1, 0.2, 0.3], "image_std": [1, 1, 1], "size": {"height": 8, "width": 6}}
    (tmp_path / "m.json").write_text(json.dumps(sidecar))
    found = make_extractor(str(file))([asked])[0]
    np.testing.assert_allclose(found, (small - [0.1, 0.2, 0.3]).mean(axis=(0, 1)), atol=1e-4)
    found = make_extractor(f"{file}?mean=0&std=1&scale=1&colours=bgr")([asked])[0]
    np.testing.assert_allclose(found, 255 * small.mean(axis=(0, 1))[::-1], atol=1e-2)


def test_a_processors_crop_is_the_middle_of_the_picture(tmp_path):
    picture = np.zeros((20, 60, 3), dtype=np.uint8)
    picture[:, 20:40] = 255
    file = channels_last(tmp_path / "m.onnx", FLOAT, ("h", "w"))
    crop = {
        "do_center_crop": True,
        "crop_size": {"height": 20, "width": 20},
        "image_mean": [0, 0, 0],
        "image_std": [1, 1, 1],
    }
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(crop))
    assert make_extractor(str(file))([picture])[0] == pytest.approx(1.0, abs=1e-3)


def test_one_or_many_pictures_of_any_size_give_the_same_rows(tmp_path):
    asked = pictures(3) + pictures(2, (16, 33), seed=2)
    for shape in (("m", "h", "w", 3), (1, "h", "w", 3)):
        file = save(
            tmp_path / "m.onnx",
            [helper.make_node("ReduceMean", ["x"], ["y"], axes=[1, 2], keepdims=0)],
            shape,
            ("m", 3),
        )
        rows = make_extractor(str(file))(asked)
        np.testing.assert_allclose(rows, [normal(one).mean(axis=(0, 1)) for one in asked], atol=1e-4)


def test_a_vector_is_preferred_to_tokens_where_the_model_has_both(tmp_path):
    nodes = [
        helper.make_node("Flatten", ["x"], ["last_hidden_state"], axis=3),
        helper.make_node("ReduceMean", ["x"], ["image_embeds"], axes=[2, 3], keepdims=0),
    ]
    infos = ("last_hidden_state", "image_embeds")
    file = save(tmp_path / "m.onnx", nodes, ("m", 3, 8, 8), ("m", "d"), outputs=infos)
    extractor = make_extractor(str(file))
    assert extractor(pictures(2)).shape == (2, 3)
    assert "'image_embeds'" in extractor.notes[0]


def positive(path, shape):
    return save(path, [helper.make_node("Relu", ["x"], ["y"])], shape, shape)


def cube(path):
    """An output of five axes."""
    node = helper.make_node("Reshape", ["x", "shape"], ["y"])
    return save(path, [node], (1, 3, 8, 8), (1, 3, 2, 4, 8), constants=[constant("shape", [1, 3, 2, 4, 8])])


@pytest.mark.parametrize(
    ("make", "options", "words"),
    [
        (cube, "", r"output of shape \(1, 3, 2, 4, 8\)"),
        (vit, "?pool=gem", "does not fit an output of shape"),
        (vit, "?pool=max", "pool = 'max'; expected one of 'cls', 'mean', 'gem'"),
        (vit, "?size=32", "takes pictures of 16 x 16, and size = 32 x 32"),
        (vit, "?sizes=32", "there is no option 'sizes'"),
        (vit, "?mean=a,b", "expected 3 finite numbers"),
        (vit, "?std=0", "expected numbers other than 0"),
        (vit, "?output=z", "output = 'z'"),
        (lambda path: channels_last(path, FLOAT, ("h", "w")), "?size=100000", "of at most 4,096"),
        (lambda path: positive(path, (4, 3, 8, 8)), "", "takes 4 pictures"),
        (lambda path: positive(path, ("m", 192)), "", "expected one input"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_and_nothing_is_flattened(tmp_path, make, options, words):
    with pytest.raises(InputError, match=words):
        make_extractor(f"{make(tmp_path / 'm.onnx')}{options}")


@pytest.mark.parametrize("content", [b"[1]", b"{", b"[" * 100_000])
def test_a_damaged_file_beside_it_is_refused(tmp_path, content):
    file = vit(tmp_path / "m.onnx")
    (tmp_path / "m.json").write_bytes(content)
    with pytest.raises(InputError, match=r"m\.json cannot be read as JSON"):
        make_extractor(str(file))


def onnx_file(path, output, shape=("m", 3, "h", "w")):
    nodes = {
        "map": [helper.make_node("Relu", ["x"], ["y"])],
        "vector": [helper.make_node("GlobalAveragePool", ["x"], ["p"]), helper.make_node("Flatten", ["p"], ["y"])],
    }[output]
    sides = ["m", 3, "a", "b"] if output == "map" else ["m", 3]
    return save(path, nodes, shape, sides)


def test_an_onnx_file_describes_by_a_vector_or_by_a_pooled_map(tmp_path):
    asked = pictures(1, (8, 12)) + pictures(1, (5, 5))
    vectors = make_extractor(str(onnx_file(tmp_path / "v.onnx", "vector")))(asked)
    x = normal(asked[0])
    np.testing.assert_allclose(vectors[0], x.mean(axis=(0, 1)), atol=1e-5)
    maps = make_extractor(str(onnx_file(tmp_path / "m.onnx", "map")))(asked)
    np.testing.assert_allclose(maps[0], (np.maximum(x, 1e-6) ** 3).mean(axis=(0, 1)) ** (1 / 3), rtol=1e-4)


def test_an_onnx_file_of_one_size_gets_pictures_of_that_size(tmp_path):
    extractor = make_extractor(str(onnx_file(tmp_path / "v.onnx", "vector", (1, 3, 16, 20))))
    assert extractor(pictures(1, (8, 12)) + pictures(1, (50, 50))).shape == (2, 3)


def test_what_is_no_onnx_file_is_refused(tmp_path):
    (tmp_path / "x.onnx").write_bytes(b"hello")
    with pytest.raises(InputError, match="cannot be read as ONNX"):
        make_extractor(str(tmp_path / "x.onnx"))
    with pytest.raises(InputError, match="does not exist"):
        make_extractor(str(tmp_path / "none.onnx"))
    with pytest.raises(InputError, match=r"expected one input \(1, 3, height, width\)"):
        make_extractor(str(onnx_file(tmp_path / "v.onnx", "vector", (1, 4, 16, 20))))
