"""Where two graphs part: the tensors to compare, where all that is computed from them is the same in both.

So a pass that changed a place near the inputs is judged by what comes out of that place, and what is behind it need not
run; and one that changed names or the header only has no such place.
"""

from __future__ import annotations

import hashlib

import onnx_ir as ir

from surgery.scopes import graphs_of

Pair = tuple[ir.Value, ir.Value]

_DRAWING = "Random", "Bernoulli", "Multinomial", "Dropout"
"""How operators begin that may draw."""

_PLAIN = {getattr(ir.AttributeType, name) for name in ("FLOAT", "FLOATS", "INT", "INTS", "STRING", "STRINGS")}
"""Types of attributes that are told apart by what Python prints of them."""

_Digests = dict[ir.Value, bytes]


def draws(model: ir.Model) -> bool:
    """Whether a run of `model` may give other numbers than the last one did."""
    nodes = [*model.graph.all_nodes(), *(node for function in model.functions.values() for node in function)]
    return any(node.op_type.startswith(_DRAWING) for node in nodes)


def parting(one: ir.Model, other: ir.Model) -> list[Pair] | None:
    """Pairs of tensors of `one` and `other`: where those of each pair are equal, so are all outputs, bit for bit.

    For an operator gives the same for the same. No pair at all: both compute the same. None: nothing is said, of graphs
    with functions or nested graphs, that draw, with other inputs or names of outputs, or whose output nothing makes.
    """
    if any(model.functions or draws(model) or _nested(model) for model in (one, other)) or _ends(one) != _ends(other):
        return None
    known: _Digests = {}
    tensors: dict[int, bytes] = {}
    for model in (one, other):
        _digest(model, known, tensors)
    found: dict[Pair, None] = {}
    seen: set[Pair] = set()
    waiting = list(zip(one.graph.outputs, other.graph.outputs, strict=True))
    while waiting:
        pair = waiting.pop()
        if pair in seen or _same(pair, known):
            continue
        seen.add(pair)
        if any(value.producer() is None for value in pair):
            return None
        behind = _behind(pair, known)
        if behind is None or any(value.producer() is None for unlike in behind for value in unlike):
            found[pair] = None
        else:
            waiting += behind
    return list(found)


def part_up_to(model: ir.Model, values: list[ir.Value]) -> ir.Model:
    """A copy of `model` that ends at `values`, which its nodes make; inputs stay, whether they are read or not."""
    places = {
        value: (number, slot) for number, node in enumerate(model.graph) for slot, value in enumerate(node.outputs)
    }
    copy = model.clone()
    nodes = list(copy.graph)
    wanted = [nodes[number].outputs[slot] for number, slot in (places[value] for value in values)]
    copy.graph.outputs.clear()
    copy.graph.outputs.extend(wanted)
    needed = set(wanted)
    for node in reversed(nodes):
        if needed.isdisjoint(node.outputs):
            copy.graph.remove(node, safe=True)
        else:
            needed.update(value for value in node.inputs if value is not None)
    for name, value in list(copy.graph.initializers.items()):
        if value not in needed and not value.is_graph_input():
            del copy.graph.initializers[name]
    return copy


def _nested(model: ir.Model) -> bool:
    return any(True for node in model.graph for _ in graphs_of(node))


def _ends(model: ir.Model) -> list[tuple[str | None, ir.TypeProtocol | None, ir.Shape | None]]:
    """Inputs with what they are, and the names of the outputs."""
    inputs = [(value.name, value.type, value.shape) for value in model.graph.inputs]
    return [*inputs, *((value.name, None, None) for value in model.graph.outputs)]


def _same(pair: Pair, known: _Digests) -> bool:
    left, right = (known.get(value) for value in pair)
    return left is not None and left == right


def _digest(model: ir.Model, known: _Digests, tensors: dict[int, bytes]) -> None:
    """Note what each tensor that is read or made in `model` is computed of, down to inputs and the bytes of weights."""
    for value in model.graph.inputs:
        default = None if value.const_value is None else _weight(value.const_value, tensors)
        known[value] = _of("input", value.name, default)
    for node in model.graph:
        for weight in node.inputs:
            if weight is not None and weight not in known and weight.const_value is not None:
                known[weight] = _weight(weight.const_value, tensors)
        read = [b"" if value is None else known[value] for value in node.inputs]
        made = _of(_kind(node, tensors), read)
        for number, value in enumerate(node.outputs):
            known[value] = _of(made, number)


def _kind(node: ir.Node, tensors: dict[int, bytes]) -> bytes:
    """What `node` does to its inputs."""
    assert isinstance(node.graph, ir.Graph)
    opset = node.graph.opset_imports.get(node.domain)
    attributes = [(name, _attribute(a, tensors)) for name, a in sorted(node.attributes.items())]
    return _of(node.op_identifier(), opset, attributes, len(node.inputs), [bool(value.name) for value in node.outputs])


def _attribute(attribute: ir.Attr, tensors: dict[int, bytes]) -> tuple[str, object]:
    if attribute.type == ir.AttributeType.TENSOR:
        return str(attribute.type), _weight(attribute.as_tensor(), tensors)
    plain = attribute.type in _PLAIN and not attribute.is_ref()
    return str(attribute.type), attribute.value if plain else ("the very one", id(attribute))


def _weight(tensor: ir.TensorProtocol, tensors: dict[int, bytes]) -> bytes:
    """Digest of the type, the shape and the bytes of `tensor`; graphs share most of theirs, which are read once."""
    if id(tensor) not in tensors:
        text = tensor.dtype == ir.DataType.STRING
        data = repr(tensor.numpy().tolist()).encode() if text else tensor.tobytes()
        tensors[id(tensor)] = _of("weight", str(tensor.dtype), str(tensor.shape), hashlib.sha256(data).digest())
    return tensors[id(tensor)]


def _of(*parts: object) -> bytes:
    return hashlib.sha256(repr(parts).encode()).digest()


def _behind(pair: Pair, known: _Digests) -> list[Pair] | None:
    """Unlike inputs of two nodes that do the same, of which `pair` is the same output; None where they are no such."""
    left, right = pair[0].producer(), pair[1].producer()
    assert left is not None
    assert right is not None
    tensors: dict[int, bytes] = {}
    if _kind(left, tensors) != _kind(right, tensors) or pair[0].index() != pair[1].index():
        return None
    read: list[Pair] = []
    for a, b in zip(left.inputs, right.inputs, strict=True):
        if (a is None) != (b is None):
            return None
        if a is not None and b is not None and not _same((a, b), known):
            read.append((a, b))
    return read
