"""Which node of a Kokoro ONNX belongs to which module of the reference: nodes and values carry the module's path.

torch's exporter names a node for the module that it was traced in (`/decoder/decoder/generator/ups.0/ConvTranspose`)
and its output after it (`..._output_0`). Optimisers and quantisers rename the nodes they replace and keep the values,
or the other way round, so both are looked at. What wraps the model (`encoder`, `decoder`, `kmodel`) is found, not
assumed. Methods that the wrapper calls itself leave out their module: the predictor's `F0.0` lies beside `predictor`.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from contracts.errors import Refusal
from surgery.weights import tensor_of

_DECODER_ANCHOR = "/generator/conv_post"
_TEXT_ANCHOR = "/bert/embeddings/word_embeddings"
"""Paths of modules that every Kokoro has, and no other model at the same place."""

_CALLED_APART = ("shared", "F0", "N", "F0_proj", "N_proj")
"""Parts of the predictor that its method `F0Ntrain` runs, outside its `forward`."""


_ADDING = frozenset({"Add", "FastGelu", "BiasGelu", "SkipLayerNormalization"})
"""What adds a bias: a node of its own, or one of those that onnxruntime fuses it into."""


class GraphModules:
    """The nodes of a graph by module.

    Attributes:
        source: the file's name, for messages.
    """

    def __init__(self, graph: ir.Graph, source: str) -> None:
        """Raises:
        Refusal: the graph is none of Kokoro.
        """
        self.source = source
        self._nodes: dict[str, list[ir.Node]] = {}
        for node in graph:
            for path in dict.fromkeys(_paths(node)):
                self._nodes.setdefault(path, []).append(node)
        self._decoder, self._text = self._root(_DECODER_ANCHOR), self._root(_TEXT_ANCHOR)

    def path(self, module: str) -> str:
        """Where the module of that name in the checkpoint lies in the graph."""
        top, _, rest = module.partition(".module")
        steps = _steps(rest.removeprefix("."))
        if top == "decoder":
            return self._decoder + steps
        apart = top == "predictor" and rest.split(".")[1] in _CALLED_APART
        return self._text + ("" if apart else f"/{top}") + steps

    def has(self, module: str) -> bool:
        """Whether a node of the module is there."""
        return self.path(module) in self._nodes

    def count(self, module: str, every: int = 1) -> int:
        """How many modules `module` stands for, whose number is written `{}`: 0, `every`, and so on."""
        number = 0
        while self.has(module.format(number * every)):
            number += 1
        return number

    def nodes(self, module: str) -> list[ir.Node]:
        """The nodes of the module, not those of modules in it."""
        return self._nodes.get(self.path(module), [])

    def node(self, module: str, *operators: str) -> ir.Node:
        """The first node of the module that is one of `operators`.

        Raises:
            Refusal: there is none.
        """
        found = next((node for node in self.nodes(module) if node.op_type in operators), None)
        if found is None:
            raise Refusal(
                f"{self.source}: is no Kokoro as its weights are looked for: there is no {' or '.join(operators)} at "
                f"{self.path(module)}; give the official .pth with its config.json."
            )
        return found

    def weight(self, node: ir.Node, place: int) -> ir.Value:
        """Input `place` of `node`, a constant: the weight, behind nodes that only pass it on.

        Raises:
            Refusal: it is computed in the graph.
        """
        found = self.constant(node.inputs[place]) if place < len(node.inputs) else None
        if found is None:
            raise Refusal(
                f"{self.source}: the weight of the node {node.name} is computed in the graph; export the model with "
                "constants folded, or give the official .pth."
            )
        return found

    def constant(self, value: ir.Value | None) -> ir.Value | None:
        """The constant that `value` is, behind any Identity (the exporter shares weights by it); None for another."""
        while value is not None and (node := value.producer()) is not None and node.op_type == "Identity":
            value = node.inputs[0]
        return value if tensor_of(value) is not None else None

    def bias(self, node: ir.Node, place: int, size: int) -> ir.Value | None:
        """The bias of a product: its input `place`, or what the one node behind it adds; None where there is none."""
        if place < len(node.inputs) and node.inputs[place] is not None:
            return self.weight(node, place)
        added = self._added(node, size)
        return None if added is None else added[0]

    def with_bias(self, node: ir.Node, place: int, size: int) -> ir.Value:
        """The output of a product with its bias, wherever that is added."""
        if place < len(node.inputs) and node.inputs[place] is not None:
            return node.outputs[0]
        added = self._added(node, size)
        return node.outputs[0] if added is None else added[1].outputs[0]

    def _added(self, node: ir.Node, size: int) -> tuple[ir.Value, ir.Node] | None:
        """The bias of so many numbers that the one node behind `node` adds, and that node."""
        readers = {use.node for use in node.outputs[0].uses()}
        adds = [reader for reader in readers if reader.op_type in _ADDING]
        for value in adds[0].inputs if len(readers) == len(adds) == 1 else ():
            found = self.constant(_before_shaping(value))
            if found is not None and constant_shape(found) == (size,):
                return found, adds[0]
        return None

    def _root(self, anchor: str) -> str:
        found = next((path for path in self._nodes if path.endswith(anchor)), None)
        if found is None:
            raise Refusal(
                f"{self.source}: is no Kokoro: it has no node at {anchor}; give the int8 or the float ONNX of "
                "Kokoro, or the official .pth."
            )
        return found.removesuffix(anchor)


def constant_shape(value: ir.Value) -> tuple[int, ...]:
    """The shape of a constant, which a Constant node's value does not state."""
    tensor = tensor_of(value)
    assert tensor is not None
    return tuple(tensor.shape.numpy())


def _before_shaping(value: ir.Value | None) -> ir.Value | None:
    """Quantisers add the bias of a convolution as [1, size, 1]."""
    node = None if value is None else value.producer()
    return node.inputs[0] if node is not None and node.op_type in ("Reshape", "Unsqueeze") else value


def _paths(node: ir.Node) -> Iterator[str]:
    for name in (node.name, *(value.name for value in node.outputs)):
        if name and "/" in name:
            yield name.rpartition("/")[0]


def _steps(path: str) -> str:
    """`cnn.0.1` as the exporter writes it: `/cnn.0/cnn.0.1`; a list is no step, a sequence in it is one."""
    steps: list[str] = []
    for part in filter(None, path.split(".")):
        if not part.isdigit():
            steps.append(part)
        elif steps[-1] == "asr_res" or "." in steps[-1]:
            steps.append(f"{steps[-1]}.{part}")
        else:
            steps[-1] += f".{part}"
    return "".join(f"/{step}" for step in steps)
