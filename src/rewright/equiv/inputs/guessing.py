"""Weight maps that nobody wrote: by what tensors are called in common checkpoints, or by their values."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

import numpy as np

from rewright import ops
from rewright.equiv.inputs.expressions import build, names_in
from rewright.equiv.inputs.given import are_close, differing
from rewright.equiv.inputs.weights import Definition, WeightMap, inputs_read
from rewright.interp.program import run
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.placement import RankProgram
from rewright.ir.types import DType, TensorType
from rewright.ops.base import Array

Values = Mapping[str, Array]
_MOST_RUNS = 256
_ROLES: tuple[tuple[str, str], ...] = (
    (r"^(model|transformer|backbone|module|gpt_neox|decoder)\.", ""),
    (r"^(decoder|model|transformer)\.", ""),
    (r"\b(h|blocks|block|layer)\.(\d+)\b", r"layers.\2"),
    (r"\b(embed_tokens|wte|tok_embeddings|embed_in|word_embeddings|embed|tokens_embed|embedding)\b", "EMBED"),
    (r"\b(lm_head|embed_out|output|head|unembed)\b(?=\.|$)", "HEAD"),
    (r"\b(self_attn|attention|attn|self_attention)\b", "ATTN"),
    (r"\b(mlp|feed_forward|ffn|ff)\b", "MLP"),
    (r"\b(input_layernorm|ln_1|norm_1|attention_norm|norm1|pre_attention_norm)\b", "NORM1"),
    (r"\b(post_attention_layernorm|ln_2|norm_2|ffn_norm|norm2|pre_mlp_norm)\b", "NORM2"),
    (r"\b(post_attn_norm|post_attention_norm|post_attention_layernorm_)\b", "POSTATTN"),
    (r"\b(pre_feedforward_layernorm)\b", "NORM2"),
    (r"\b(post_feedforward_layernorm|post_mlp_norm|post_ffw_norm)\b", "POSTMLP"),
    (r"\b(qkv_proj|query_key_value|c_attn|Wqkv|wqkv|qkv|attn)\b(?=\.(weight|bias)$)", "QKV"),
    (r"\b(q_proj|wq|query|q_lin|q)\b(?=\.(weight|bias)$)", "Q"),
    (r"\b(k_proj|wk|key|k_lin|k)\b(?=\.(weight|bias)$)", "K"),
    (r"\b(v_proj|wv|value|v_lin|v)\b(?=\.(weight|bias)$)", "V"),
    (r"(?<=ATTN\.)(o_proj|wo|out_proj|c_proj|proj|dense|o)\b", "O"),
    (r"\b(gate_up_proj|gate_up|w13|wi)\b", "GATEUP"),
    (r"(?<=MLP\.)(gate_proj|w1|fc_1|gate)\b", "GATE"),
    (r"(?<=MLP\.)(up_proj|w3|fc_2|up)\b", "UP"),
    (r"(?<=MLP\.)(down_proj|w2|proj|c_proj|down|fc2|dense_4h_to_h)\b", "DOWN"),
    (r"(?<=MLP\.)(c_fc|fc|fc1|dense_h_to_4h)\b", "UP"),
    (r"^(norm|ln_f|final_norm|final_layer_norm|final_layernorm)\b", "NORM"),
    (r"\b(q_norm|norm_q|q_layernorm|query_norm)\b", "QNORM"),
    (r"\b(k_norm|norm_k|k_layernorm|key_norm)\b", "KNORM"),
)
_FUSED = {"QKV": ("Q", "K", "V"), "GATEUP": ("GATE", "UP")}


@dataclass(frozen=True)
class _Open:
    """The inputs that both programs read and that nothing is known about."""

    left: dict[str, tuple[int, ...]]
    right: dict[str, tuple[int, ...]]
    names: tuple[tuple[str, ...], tuple[str, ...]]
    """All float inputs of both sides: what their names have in common says nothing."""


def guess_definitions(
    weights: WeightMap,
    left: Graph,
    right: RankProgram,
    values: tuple[Values, Values] | None = None,
    shards: Sequence[Values] = (),
) -> WeightMap:
    """The map with definitions for inputs that only one side has, where values or names say what they are.

    Values of a checkpoint decide where both sides have them; names decide what they leave open. Of ranks the values of
    each decide, which are ``shards``.
    """
    if weights.placements:
        return weights
    if len(right.graphs) != 1:
        return _of_ranks(weights, left, right, values[0], shards) if values is not None and shards else weights
    found = list(weights.definitions)
    said: list[str] = []
    known: dict[Definition, str] = {}
    arguments = list(_arguments(found, left, right.graphs[0]))
    if arguments:
        found += arguments
        said.append(f"arguments of other names are the same: {'; '.join(f'{d.name} is {d.text}' for d in arguments)}")
    for how, search in (("values", _by_values), ("names", _by_names)):
        parted = differing(left, right.graphs[0], values) if how == "values" else frozenset[str]()
        unknown = _unknown(found, left, right.graphs[0], parted)
        if not unknown.left or not unknown.right:
            break
        more = list(search(unknown, values))
        if more:
            found += more
            shown = "; ".join(str(d) for d in more[:2]) + (f" and {len(more) - 2} more" if len(more) > 2 else "")
            known.update(dict.fromkeys(more, how))
            said.append(f"the weight map was {'completed' if weights.definitions else 'found'} by {how}: {shown}")
    return replace(weights, definitions=tuple(found), guessed=(*weights.guessed, *said), found=known)


def _of_ranks(
    weights: WeightMap, left: Graph, right: RankProgram, lefts: Values, shards: Sequence[Values]
) -> WeightMap:
    """The map with what every rank holds, by the values that it holds."""
    found: list[Definition] = []
    for rank, (graph, held) in enumerate(zip(right.graphs, shards, strict=True)):
        given = [d for d in weights.definitions if d.rank in (None, rank)]
        arguments = list(_arguments(given, left, graph))
        unknown = _unknown([*given, *arguments], left, graph, differing(left, graph, (lefts, held)))
        more = [*arguments, *_by_values(unknown, (lefts, held))]
        found += [replace(definition, rank=rank) for definition in more]
    found += _zeros([*weights.definitions, *found], right, lefts, shards)
    if not found:
        return weights
    said = f"the weight map was found by values: {'; '.join(str(d) for d in found[:2])} and {len(found) - 2} more"
    return replace(weights, definitions=(*weights.definitions, *found), guessed=(*weights.guessed, said))


def _zeros(
    definitions: Sequence[Definition], right: RankProgram, lefts: Values, shards: Sequence[Values]
) -> Iterator[Definition]:
    """What is zero on a rank and known on another: a bias that one rank alone adds to a sum over all."""
    known = {(d.name, d.rank) for d in definitions if d.side == "right"}
    elsewhere = {name: name for name, value in lefts.items() if np.any(value)}
    elsewhere |= {d.name: d.text for d in definitions if d.side == "right"}
    for rank, (graph, held) in enumerate(zip(right.graphs, shards, strict=True)):
        for name in graph.inputs:
            is_open = name in elsewhere and not {(name, rank), (name, None)} & known
            if is_open and name in held and not np.any(held[name]):
                yield Definition("right", name, f"0 * ({elsewhere[name]})", rank)


def related_names(weights: WeightMap) -> set[str]:
    """The names that a map says something about."""
    return {name for d in weights.definitions for name in (d.name, *names_in(d.text))} | set(weights.placements)


def _unknown(
    definitions: Sequence[Definition], left: Graph, right: Graph, parted: Collection[str] = frozenset()
) -> _Open:
    known: dict[str, set[str]] = {"left": set(), "right": set()}
    for definition in definitions:
        known[definition.side].add(definition.name)
        known["left" if definition.side == "right" else "right"].update(names_in(definition.text))
    lefts, rights = (
        _open_shapes(own, known[side].union(set(other.inputs).difference(parted)))
        for own, other, side in ((left, right, "left"), (right, left, "right"))
    )
    names = tuple(n for n in left.inputs if _is_float(left, n)), tuple(n for n in right.inputs if _is_float(right, n))
    return _Open(lefts, rights, names)


def _open_shapes(graph: Graph, known: Collection[str]) -> dict[str, tuple[int, ...]]:
    """The shapes of the float inputs that a program reads, without those ``known``."""
    live = inputs_read(graph)
    shapes = {name: _shape(graph, name) for name in graph.inputs if name in live and name not in known}
    return {name: shape for name, shape in shapes.items() if shape is not None}


def _arguments(definitions: Sequence[Definition], left: Graph, right: Graph) -> Iterator[Definition]:
    """Integer inputs that only one side has, where both read one of each type: tokens, positions."""
    known = {d.name for d in definitions} | {name for d in definitions for name in names_in(d.text)}
    mine, other = (
        [(graph.nodes[graph.inputs[name]].type, name) for name in graph.inputs if name in live - known - {*theirs}]
        for graph, theirs, live in ((left, right.inputs, inputs_read(left)), (right, left.inputs, inputs_read(right)))
    )
    for kind, name in other:
        same = [n for k, n in mine if k == kind]
        if not kind.dtype.is_float and len(same) == 1 and sum(k == kind for k, _ in other) == 1:
            yield Definition("right", name, same[0])


def _is_float(graph: Graph, name: str) -> bool:
    return graph.nodes[graph.inputs[name]].type.dtype.is_float


def _shape(graph: Graph, name: str) -> tuple[int, ...] | None:
    kind = graph.nodes[graph.inputs[name]].type
    if not kind.dtype.is_float or not all(isinstance(n, int) for n in kind.shape):
        return None
    return tuple(int(str(n)) for n in kind.shape)


# --- by names


def role(name: str) -> str:
    """What a tensor is in a transformer, from its name in common checkpoints."""
    for pattern, what in _ROLES:
        name = re.sub(pattern, what, name)
    return name


def _by_names(unknown: _Open, values: tuple[Values, Values] | None) -> Iterator[Definition]:
    roles = _roles(unknown.left, unknown.names[0]), _roles(unknown.right, unknown.names[1])
    shapes = unknown.left, unknown.right
    for side, mine, other in (("right", 1, 0), ("left", 0, 1)):
        for what, name in roles[mine].items():
            shape = shapes[mine][name]
            same = roles[other].get(what)
            if same is not None:
                text = _same_or_turned(same, shapes[other][same], shape)
                if text is not None and (side == "right"):
                    yield Definition("right", name, text)
                continue
            tied = roles[other].get(what.replace("HEAD", "EMBED")) if "HEAD" in what else None
            if tied is not None and side == "right" and shapes[other][tied] == shape:
                yield Definition("right", name, tied)
                continue
            parts = [roles[other].get(part) for part in _parts_of(what)]
            if not parts or any(part is None for part in parts):
                continue
            sizes = [shapes[other][part] for part in parts if part is not None]
            if shape == (sum(s[0] for s in sizes), *sizes[0][1:]):
                text = f"concat([{', '.join(part for part in parts if part)}], axis=0)"
                yield Definition("right" if side == "right" else "left", name, text)


def _roles(names: Collection[str], every: Collection[str]) -> dict[str, str]:
    """Names by role; a prefix that all names of a program have, ``every`` one, says nothing."""
    listed = list(every)
    while listed and all("." in name for name in listed):
        first = listed[0].partition(".")[0]
        numbered = all(name.split(".")[1].isdigit() for name in listed)  # "layers" of "layers.0" says something
        if first.isdigit() or numbered or any(name.partition(".")[0] != first for name in listed):
            break
        listed = [name.partition(".")[2] for name in listed]
    if any("post_feedforward_layernorm" in name for name in listed):
        listed = [name.replace("post_attention_layernorm", "post_attention_norm") for name in listed]
    return {role(short): name for short, name in zip(listed, every, strict=True) if name in names}


def _parts_of(what: str) -> list[str]:
    for fused, parts in _FUSED.items():
        if f"{fused}." in what:
            return [what.replace(f"{fused}.", f"{part}.") for part in parts]
    return []


def _same_or_turned(name: str, own: tuple[int, ...], wanted: tuple[int, ...]) -> str | None:
    if own == wanted:
        return name
    return f"transpose({name}, (1, 0))" if own[::-1] == wanted and len(own) == 2 else None


# --- by values


def _by_values(unknown: _Open, values: tuple[Values, Values] | None) -> Iterator[Definition]:
    if values is None:
        return
    lefts = {n: np.asarray(values[0][n]) for n in unknown.left if n in values[0]}
    rights = {n: np.asarray(values[1][n]) for n in unknown.right if n in values[1]}
    named = {d.name: d for d in _by_names(unknown, values) if d.name in rights and _fits(d, lefts, rights[d.name])}
    yield from named.values()  # equal numbers, as biases of few digits have, do not mislead where names say enough
    taken = {name for d in named.values() for name in names_in(d.text)}
    rights = {name: wanted for name, wanted in rights.items() if name not in named}
    for name, wanted in rights.items():
        whole = _whole(name, wanted, {n: v for n, v in lefts.items() if n not in taken})
        if whole is not None:
            taken.add(whole[0])
            yield Definition("right", name, whole[1])
    rest = {n: v for n, v in lefts.items() if n not in taken}
    for name, wanted in rights.items():
        if _whole(name, wanted, lefts) is None:
            turned = _transposes(rest)
            ways = itertools.product((rest, turned), range(wanted.ndim))
            found = (_rows(wanted, part, axis) for part, axis in ways)
            text = _by_blocks(wanted, rest) or next((text for text in found if text is not None), None)
            if text is not None:
                yield Definition("right", name, text)


def _fits(definition: Definition, lefts: Mapping[str, Array], wanted: Array) -> bool:
    """Whether the values of an input are what its definition makes of values of the other side."""
    names = names_in(definition.text)
    if definition.side != "right" or any(name not in lefts for name in names):
        return False
    builder = GraphBuilder("definition")
    dtype = DType.F64
    kinds = {name: TensorType(lefts[name].shape, dtype) for name in names}
    places = {name: builder.input(name, ops.Input(name, kind)) for name, kind in kinds.items()}
    builder.output("made", build(definition.text, builder, places))
    made = run(builder.build(), {name: np.asarray(lefts[name], np.float64) for name in names})["made"]
    return made.shape == wanted.shape and are_close(made, np.asarray(wanted, np.float64))


def _transposes(lefts: Mapping[str, Array]) -> dict[str, Array]:
    """Matrices, and stacks of matrices, with rows and columns exchanged."""
    found = {f"transpose({n}, (1, 0))": v.T for n, v in lefts.items() if v.ndim == 2}
    return found | {f"transpose({n}, (0, 2, 1))": v.swapaxes(1, 2) for n, v in lefts.items() if v.ndim == 3}


def _whole(name: str, wanted: Array, lefts: Mapping[str, Array]) -> tuple[str, str] | None:
    """A tensor of the left program that is the wanted one as a whole, turned, or up to an offset of one."""
    found: list[tuple[float, str, str]] = []
    for other, value in lefts.items():
        text = None
        if value.shape == wanted.shape and are_close(value, wanted):
            text = other
        elif value.ndim == 2 and value.shape[::-1] == wanted.shape and are_close(value.T, wanted):
            text = f"transpose({other}, (1, 0))"
        elif value.shape == wanted.shape and value.ndim == 1:
            text = next(
                (f"{other} {sign} 1" for sign, k in (("+", 1), ("-", -1)) if are_close(value + k, wanted)), None
            )
        if text is not None:
            found.append((SequenceMatcher(None, role(other), role(name)).ratio(), other, text))
    if not found:
        return None
    _, other, text = max(found)
    return other, text


def _by_blocks(wanted: Array, lefts: Mapping[str, Array]) -> str | None:
    """Blocks of rows of left tensors, each as it is or head by head with rotated halves as rotated pairs."""
    same = {n: v for n, v in lefts.items() if 0 < v.ndim == wanted.ndim and v.shape[1:] == wanted.shape[1:]}
    if not same:
        return None
    known = {np.asarray(row, np.float32).tobytes(): (n, k) for n, v in same.items() for k, row in enumerate(v)}
    places = [known.get(np.asarray(row, np.float32).tobytes()) for row in wanted]
    if None in places or len(set(places)) < len(places):
        return None
    rows = itertools.groupby((place for place in places if place is not None), key=lambda place: place[0])
    runs = [(name, [number for _, number in run]) for name, run in rows]
    text = _by_groups(runs, same)
    if text is None and len(runs) <= _MOST_RUNS:
        text = _concatenate([_block(name, numbers, same) for name, numbers in runs])
    return text


def _by_groups(runs: Sequence[tuple[str, list[int]]], lefts: Mapping[str, Array]) -> str | None:
    """The same parts over and over again, each going on where it ended in the group before, as one concatenation.

    That is how queries, keys and values of one group of heads lie together.
    """
    parts = len({name for name, _ in runs})
    groups = len(runs) // parts if parts else 0
    if groups < 2 or len(runs) % parts:
        return None
    found: list[str | None] = []
    for k in range(parts):
        name, numbers = runs[k][0], [number for _, run in runs[k::parts] for number in run]
        if any((other, len(run)) != (name, len(runs[k][1])) for other, run in runs[k::parts]):
            return None
        block = _block(name, numbers, lefts)
        sizes = groups, len(runs[k][1]), *lefts[name].shape[1:]
        found.append(None if block is None else f"reshape({block}, {sizes})")
    whole = _concatenate(found, axis=1)
    return (
        None
        if whole is None
        else f"reshape({whole}, {(sum(len(run) for _, run in runs), *lefts[runs[0][0]].shape[1:])})"
    )


def _concatenate(parts: Sequence[str | None], axis: int = 0) -> str | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or not known:
        return None
    return known[0] if len(known) == 1 else f"concat([{', '.join(known)}], axis={axis})"


def _block(name: str, numbers: Sequence[int], lefts: Mapping[str, Array]) -> str | None:
    """Rows of one tensor in an order that a rotary layout explains."""
    return _in_order(numbers, _slice(name, 0, min(numbers), 1, len(numbers), lefts[name].shape))


def _in_order(numbers: Sequence[int], text: str) -> str | None:
    """How rows are made of those of a tensor in order; None where that is by no rotary layout."""
    count = len(numbers)
    order = np.array(numbers) - min(numbers)
    plain = np.arange(count)
    if np.array_equal(order, plain):
        return text
    for heads in (h for h in range(1, count // 4 + 1) if count % (2 * h) == 0):
        half = count // heads // 2
        for how, split in (("interleaved", (heads, 2, half)), ("halves", (heads, half, 2))):
            if np.array_equal(plain.reshape(split).swapaxes(1, 2).reshape(-1), order):
                return f"{how}({text}, heads={heads})"
    return None


def _rows(wanted: Array, lefts: Mapping[str, Array], axis: int = 0) -> str | None:
    """Rows of left tensors along an axis that the wanted one is put together from, as a concatenation of slices."""
    if wanted.ndim <= axis:
        return None
    known: dict[bytes, list[tuple[str, int]]] = defaultdict(list)
    others = (*wanted.shape[:axis], *wanted.shape[axis + 1 :])
    for name, value in lefts.items():
        if value.ndim == wanted.ndim and (*value.shape[:axis], *value.shape[axis + 1 :]) == others:
            for number, row in enumerate(np.moveaxis(value, axis, 0)):
                known[np.asarray(row, np.float32).tobytes()].append((name, number))
    places: list[tuple[str, int]] = []
    for row in np.moveaxis(wanted, axis, 0):
        choices = known.get(np.asarray(row, np.float32).tobytes())
        if not choices:
            return None
        follows = [c for c in choices if places and c == (places[-1][0], places[-1][1] + 1)]
        places.append((follows or choices)[0])
    runs = _runs(places)
    if len(runs) > _MOST_RUNS or len(set(places)) < len(places):  # equal numbers by chance, such as ones
        return None
    parts = [_slice(name, axis, start, step, count, lefts[name].shape) for name, start, step, count in runs]
    return parts[0] if len(parts) == 1 else f"concat([{', '.join(parts)}], axis={axis})"


def _slice(name: str, axis: int, start: int, step: int, count: int, shape: Sequence[int]) -> str:
    stop = start + step * (count - 1) + 1
    if (start, stop, step) == (0, shape[axis], 1):
        return name
    before = "".join(f"0:{size}, " for size in shape[:axis])
    return f"{name}[{before}{start}:{stop}]" if step == 1 else f"{name}[{before}{start}:{stop}:{step}]"


def _runs(places: Sequence[tuple[str, int]]) -> list[tuple[str, int, int, int]]:
    """Stretches of rows of one tensor with a constant positive step: name, start, step, count."""
    runs: list[tuple[str, int, int, int]] = []
    for name, number in places:
        if runs:
            own, start, step, count = runs[-1]
            gap = number - (start + step * (count - 1))
            if own == name and gap > 0 and (count == 1 or gap == step):
                runs[-1] = own, start, gap, count + 1
                continue
        runs.append((name, number, 1, 1))
    return runs
