#!/usr/bin/env python3
"""Exports networks to ONNX without their weights: files of a few kilobytes that Stepcast counts.

Beside each file stands what other programs count for the same network: PyTorch its parameters, and
`torch.utils.flop_counter` the operations of one sample's forward pass.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import math
from pathlib import Path
from typing import Any

from common import KitError, guarded, import_torch, listed, note, packed, provenance, rename_into_place

EXAMPLES = """\
  export_onnx.py --model resnet50,bert-base -o crates/onnx/tests/models
  export_onnx.py --model gpt2 --exporter dynamo --mode eval -o models"""

# Zoo name: torchvision's name, side of the square image.
IMAGES = {
    "alexnet": ("alexnet", 224),
    "vgg16": ("vgg16", 224),
    "resnet18": ("resnet18", 224),
    "resnet50": ("resnet50", 224),
    "densenet121": ("densenet121", 224),
    "mobilenet-v2": ("mobilenet_v2", 224),
    "efficientnet-b0": ("efficientnet_b0", 224),
    "googlenet": ("googlenet", 224),
    "inception-v3": ("inception_v3", 299),
    "vit-b-16": ("vit_b_16", 224),
}
WITHOUT_AUXILIARY = ("googlenet", "inception-v3")
# Zoo name: class of transformers, its configuration, tokens of a sample, inputs.
TEXTS = {
    "bert-base": ("BertModel", "BertConfig", 128, ("input_ids", "attention_mask", "token_type_ids")),
    "bert-base-mlm": ("BertForMaskedLM", "BertConfig", 128, ("input_ids", "attention_mask", "token_type_ids")),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", 1024, ("input_ids", "attention_mask")),
}
KEPT_BYTES = 1024  # of a tensor of whole numbers: shapes and indices are shorter


class Text:
    """A language model called with tensors in the order of `names`, giving one tensor."""

    @staticmethod
    def wrap(torch: Any, inner: Any, names: tuple[str, ...]) -> Any:
        class Wrapped(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.model = inner

            def forward(self, *tensors: Any) -> Any:
                out = self.model(**dict(zip(names, tensors, strict=True)), use_cache=False)
                return out[1] if "pooler_output" in out else out[0]

        return Wrapped()


def build(torch: Any, name: str) -> tuple[Any, tuple[Any, ...], dict[str, dict[int, str]]]:
    """A network, one batch of two samples, and the names of the inputs' open dimensions."""
    from tasks import optional

    if name in IMAGES:
        function, side = IMAGES[name]
        more = {"aux_logits": False, "init_weights": False} if name in WITHOUT_AUXILIARY else {}
        module = getattr(optional("torchvision.models", name), function)(weights=None, **more)
        return module, (torch.randn(2, 3, side, side),), {"image": {0: "batch"}}
    if name in TEXTS:
        transformers = optional("transformers", name)
        kind, settings, length, inputs = TEXTS[name]
        config = getattr(transformers, settings)(attn_implementation="eager")
        module = Text.wrap(torch, getattr(transformers, kind)(config), inputs)
        tensors = tuple(torch.ones(2, length, dtype=torch.long) for _ in inputs)
        return module, tensors, {each: {0: "batch", 1: "sequence"} for each in inputs}
    raise KitError(f'there is no model "{name}"', f"use {', '.join([*IMAGES, *TEXTS])}")


def counted(torch: Any, module: Any, tensors: tuple[Any, ...]) -> dict[str, int]:
    """What PyTorch counts: trainable parameters, and operations of one sample's forward pass."""
    from torch.utils.flop_counter import FlopCounterMode

    one = tuple(tensor[:1] for tensor in tensors)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        module(*one)
    return {
        "parameters": sum(parameter.numel() for parameter in module.parameters()),
        "tensors": sum(1 for _ in module.parameters()),
        "flops": counter.get_total_flops(),
    }


def export(torch: Any, module: Any, tensors: tuple[Any, ...], dims: Any, arguments: argparse.Namespace) -> Any:
    import onnx

    if arguments.exporter == "dynamo":
        batch, sequence = torch.export.Dim("batch"), torch.export.Dim("sequence")
        known = {"batch": batch, "sequence": sequence}
        shapes = tuple({axis: known[label] for axis, label in axes.items()} for axes in dims.values())
        shapes = (shapes,) if type(module).__name__ == "Wrapped" else shapes
        names = list(dims)
        program = torch.onnx.export(
            module, tensors, input_names=names, dynamic_shapes=shapes, dynamo=True, verbose=False, optimize=False
        )
        return program.model_proto
    buffer = io.BytesIO()
    training = torch.onnx.TrainingMode.TRAINING if arguments.mode == "train" else torch.onnx.TrainingMode.EVAL
    torch.onnx.export(
        module, tensors, buffer, input_names=list(dims), dynamic_axes=dims, dynamo=False,
        training=training, do_constant_folding=False, opset_version=arguments.opset,
    )  # fmt: skip
    return onnx.load_from_string(buffer.getvalue())


def distinguish(torch: Any, module: Any) -> None:
    """Random numbers in place of ones and zeros: exporters merge tensors that are equal, and drop biases of zero."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.uniform_(0.5, 1.5)


def strip(model: Any) -> None:
    """Leaves dimensions and types of weights, and says that their content lies elsewhere."""
    import onnx

    def empty(tensor: Any) -> None:
        real = tensor.data_type in (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE)
        if math.prod(tensor.dims) <= 1 or (not real and len(tensor.SerializeToString()) <= KEPT_BYTES):
            return
        for field in ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data"):
            tensor.ClearField(field)
        tensor.data_location = onnx.TensorProto.EXTERNAL
        del tensor.external_data[:]
        tensor.external_data.add(key="location", value="absent")

    for tensor in model.graph.initializer:
        empty(tensor)
    for node in model.graph.node:
        node.ClearField("doc_string")
        del node.metadata_props[:]
        for attribute in node.attribute:
            if attribute.HasField("t"):
                empty(attribute.t)
    del model.graph.value_info[:]
    del model.graph.metadata_props[:]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog="examples:\n" + EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=listed, default=["resnet50"], help="names, separated by commas")
    parser.add_argument("--exporter", choices=("script", "dynamo"), default="script", help="PyTorch's older or newer one")
    parser.add_argument("--mode", choices=("train", "eval"), default="train", help="train keeps dropout and batch norm")
    parser.add_argument("--opset", type=int, default=17, help="of the older exporter")
    parser.add_argument("-o", "--output", type=Path, default=Path(), help="folder for NAME.HOW.onnx.gz")
    arguments = parser.parse_args()
    torch = import_torch()
    if not arguments.output.is_dir():
        raise KitError(f"there is no folder {arguments.output}", "make it first")
    try:
        import onnx  # noqa: F401
    except ImportError as error:
        raise KitError(f"onnx cannot be imported: {error}", "install it: pip install onnx onnxscript") from error
    for name in arguments.model:
        module, tensors, dims = build(torch, name)
        distinguish(torch, module)
        module.train(arguments.mode == "train")
        model = export(torch, module, tensors, dims, arguments)
        strip(model)
        how = arguments.exporter if arguments.exporter == "dynamo" else f"script{arguments.opset}"
        path = arguments.output / f"{name}.{how}.onnx.gz"
        rename_into_place(path, gzip.compress(model.SerializeToString(deterministic=True), mtime=0))
        with torch.device("cpu"):
            counts = counted(torch, module.eval(), tensors)
        libraries = {library: __import__(library).__version__ for library in ("onnx", *used(name))}
        facts = provenance(torch.device("cpu"), exporter=arguments.exporter, mode=arguments.mode, **libraries)
        facts = {"model": name, "counted": counts, "made": facts}
        beside = path.with_name(path.name + ".provenance.json")
        rename_into_place(beside, packed(beside, json.dumps(facts, indent=1) + "\n"))
        note(f"{path}: {path.stat().st_size} bytes, {counts['parameters']} parameters, {counts['flops']} operations")


def used(name: str) -> tuple[str, ...]:
    return ("torchvision",) if name in IMAGES else ("transformers",)


if __name__ == "__main__":
    guarded(main)
