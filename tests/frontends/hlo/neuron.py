"""One step of decoding in the style of transformers-neuronx: a module a device, vendor calls, key and value caches.

States are (hidden, batch), caches (positions, batch, heads, size). The embedding is split by vocabulary: every device
looks up its own rows, so that devices differ in one constant.
"""

from __future__ import annotations

from dataclasses import dataclass, field

REGIONS = """
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
"""
BATCH, POSITIONS, SIZE = 2, 6, 4
TRANSFER = 'custom_call_target="AwsNeuronTransferWithStaticRing", api_version=API_VERSION_UNSPECIFIED'


@dataclass(frozen=True)
class Shape:
    """A model, and what is wrong with it."""

    degree: int = 1
    layers: int = 1
    heads: int = 8
    keys: int = 4
    vocabulary: int = 24
    gated: bool = True
    """Gate and root mean square as in Llama, else a fused GELU with biases."""
    bug: str = ""

    @property
    def hidden(self) -> int:
        return 2 * self.heads

    @property
    def inner(self) -> int:
        return 3 * self.heads


@dataclass
class Module:
    """The instructions of one device's module."""

    shape: Shape
    device: int
    lines: list[str] = field(default_factory=list[str])
    parameters: int = 0

    def add(self, kind: str, call: str) -> str:
        name = f"v{len(self.lines)}"
        self.lines.append(f"  {name} = {kind} {call}")
        return name

    def parameter(self, name: str, *sizes: int, dtype: str = "f32") -> str:
        kind = f"{dtype}[{','.join(map(str, sizes))}]"
        self.lines.append(f"  {name} = {kind} parameter({self.parameters})")
        self.parameters += 1
        return self.add(kind, f"custom-call({name}), {TRANSFER}") if dtype == "f32" else name

    def vendor(self, target: str, kind: str, *operands: str, config: str = "") -> str:
        call = f'custom-call({", ".join(operands)}), custom_call_target="AwsNeuron{target}", '
        return self.add(kind, f'{call}api_version=API_VERSION_UNSPECIFIED, backend_config="{config}"')

    def reduced(self, x: str, kind: str) -> str:
        degree = self.shape.degree
        if degree == 1:
            return x
        halves = f"[2,{degree // 2}]<=[{degree}]"
        groups = halves if self.shape.bug == "groups" else f"[1,{degree}]<=[{degree}]"
        return self.add(kind, f"all-reduce({x}), replica_groups={groups}, to_apply=sum")

    def along(self, x: str, kind: str, axis: int | None = None) -> str:
        return self.add(kind, f"broadcast({x}), dimensions={{{'' if axis is None else axis}}}")

    def text(self) -> str:
        return f"HloModule step\n{REGIONS}\nENTRY main {{\n" + "\n".join(self.lines) + "\n}\n"


def step(shape: Shape, device: int = 0) -> str:
    """The module of one device."""
    m = Module(shape, device)
    state = f"f32[{shape.hidden},{BATCH}]"
    m.parameter("token", BATCH, dtype="s32")
    m.parameter("position", dtype="s32")
    x = _embedding(m, state)
    caches: list[str] = []
    for layer in range(shape.layers):
        x = _layer(m, x, layer, state, caches)
    rows = shape.vocabulary // shape.degree
    head = m.parameter("head", shape.hidden, rows)
    normed = _norm(m, x, "final", state)
    logits = m.add(f"f32[{rows},{BATCH}]", f"dot({head}, {normed}), {_contract(0, 0)}")
    kinds = [f"f32[{rows},{BATCH}]", *[_cache_kind(shape)] * len(caches)]
    m.lines.append(f"  ROOT result = ({', '.join(kinds)}) tuple({', '.join([logits, *caches])})")
    return m.text()


def relations(shape: Shape) -> dict[str, str]:
    """How devices hold the inputs; the fused weight holds a device's queries, then keys, then values."""
    found = {"token": "Replicate()", "position": "Replicate()", "embedding": "Shard(0)", "head": "Shard(1)"}
    found |= {"final": "Replicate()"}
    q, kv = shape.heads * SIZE // shape.degree, shape.keys * SIZE // shape.degree
    for layer in range(shape.layers):
        parts = [
            f"qkv{layer}@{rank}[:, {low}:{high}]"
            for low, high in ((0, q), (q, q + kv), (q + kv, q + 2 * kv))
            for rank in range(shape.degree)
        ]
        placed = dict.fromkeys(("key", "value"), "Shard(2)") | dict.fromkeys(("norm", "after"), "Replicate()")
        placed |= {
            "out": "Shard(0)",
            "up": "Shard(1)",
            "down": "Shard(0)",
            "qkv": f"concat([{', '.join(parts)}], axis=1)",
        }
        placed |= {"gate": "Shard(1)"} if shape.gated else {"up_bias": "Shard(0)", "down_bias": "Replicate()"}
        found |= {f"{name}{layer}": placement for name, placement in placed.items()}
    return found


def _contract(left: int, right: int) -> str:
    return f"lhs_contracting_dims={{{left}}}, rhs_contracting_dims={{{right}}}"


def _cache_kind(shape: Shape) -> str:
    return f"f32[{POSITIONS},{BATCH},{shape.keys // shape.degree},{SIZE}]"


def _embedding(m: Module, state: str) -> str:
    """The rows of the tokens; of several devices those that a device has, zero for the others, and their sum."""
    rows, hidden = m.shape.vocabulary // m.shape.degree, m.shape.hidden
    table = m.parameter("embedding", rows, hidden)
    kind, wide = f"s32[{BATCH}]", f"f32[{BATCH},{hidden}]"
    if m.shape.degree == 1:
        return m.add(state, f"transpose({_rows(m, table, 'token')}), dimensions={{1,0}}")
    first = m.device * rows + (1 if m.shape.bug == "offset" and m.device else 0)
    low, zero, top = (m.along(m.add("s32[]", f"constant({n})"), kind) for n in (first, 0, rows - 1))
    own = m.add(kind, f"subtract(token, {low})")
    above, below = (
        m.add(f"pred[{BATCH}]", f"compare({own}, {n}), direction={d}") for n, d in ((zero, "GE"), (top, "LE"))
    )
    has = m.along(m.add(f"pred[{BATCH}]", f"and({above}, {below})"), f"pred[{BATCH},{hidden}]", 0)
    nothing = m.along(m.add("f32[]", "constant(0)"), wide)
    read = _rows(m, table, m.add(kind, f"clamp({zero}, {own}, {top})"))
    kept = m.add(wide, f"select({has}, {read}, {nothing})")
    return m.reduced(m.add(state, f"transpose({kept}), dimensions={{1,0}}"), state)


def _rows(m: Module, table: str, places: str) -> str:
    sizes = f"slice_sizes={{1,{m.shape.hidden}}}"
    axes = f"offset_dims={{1}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1, {sizes}"
    return m.add(f"f32[{BATCH},{m.shape.hidden}]", f"gather({table}, {places}), {axes}")


def _norm(m: Module, x: str, name: str, state: str) -> str:
    weight = m.parameter(name, m.shape.hidden)
    eps = m.add("f32[]", "constant(1e-05)")
    return m.vendor("RmsNorm", state, x, weight, eps, config="0")


def _layer(m: Module, x: str, layer: int, state: str, caches: list[str]) -> str:
    normed = _norm(m, x, f"norm{layer}", state)
    attended = _attention(m, normed, layer, caches)
    out = m.parameter(f"out{layer}", m.shape.heads * SIZE // m.shape.degree, m.shape.hidden)
    product = m.add(state, f"dot({out}, {attended}), {_contract(0, 1)}")
    product = product if m.shape.bug == "reduction" else m.reduced(product, state)
    x = m.add(state, f"add({x}, {product})")
    normed = _norm(m, x, f"after{layer}", state)
    return m.add(state, f"add({x}, {_network(m, normed, layer, state)})")


def _network(m: Module, x: str, layer: int, state: str) -> str:
    wide = m.shape.inner // m.shape.degree
    kind = f"f32[{BATCH},{wide}]"
    up = m.add(kind, f"dot({x}, {m.parameter(f'up{layer}', m.shape.hidden, wide)}), {_contract(0, 0)}")
    if m.shape.gated:
        gate = m.add(kind, f"dot({x}, {m.parameter(f'gate{layer}', m.shape.hidden, wide)}), {_contract(0, 0)}")
        target = "Silu" if m.shape.bug != "activation" or m.shape.degree == 1 else "Gelu"
        inner = m.add(kind, f"multiply({m.vendor(target, kind, gate)}, {up})")
    else:
        bias = m.along(m.parameter(f"up_bias{layer}", wide), kind, 1)
        target = "Gelu" if m.shape.bug != "activation" or m.shape.degree == 1 else "GeluApprxTanh"
        inner = m.vendor(target, kind, m.add(kind, f"add({up}, {bias})"))
    down = m.parameter(f"down{layer}", wide, m.shape.hidden)
    product = m.add(state, f"dot({down}, {inner}), {_contract(0, 1)}")
    if m.shape.gated:
        return m.reduced(product, state)
    bias = m.along(m.parameter(f"down_bias{layer}", m.shape.hidden), state, 0)
    if m.shape.bug == "bias":
        return m.reduced(m.add(state, f"add({product}, {bias})"), state)
    return m.add(state, f"add({m.reduced(product, state)}, {bias})")


def _attention(m: Module, x: str, layer: int, caches: list[str]) -> str:
    """(batch, heads * size) from the cached keys and values, of which those of the new position are written."""
    heads, keys = m.shape.heads // m.shape.degree, m.shape.keys // m.shape.degree
    q, kv, group = heads * SIZE, keys * SIZE, heads // keys
    fused = m.parameter(f"qkv{layer}", m.shape.hidden, q + 2 * kv)
    joint = m.add(f"f32[{BATCH},{q + 2 * kv}]", f"dot({x}, {fused}), {_contract(0, 0)}")
    ends = ((0, q), (q, q + kv), (q + kv, q + 2 * kv))
    query, *new = (
        m.add(f"f32[{BATCH},{high - low}]", f"slice({joint}), slice={{[0:{BATCH}], [{low}:{high}]}}")
        for low, high in ends
    )
    query = m.add(f"f32[{BATCH},{heads},{SIZE}]", f"reshape({query})")
    zero = m.add("s32[]", "constant(0)")
    whole: list[str] = []
    for name, value in zip(("key", "value"), new, strict=True):
        row = m.add(f"f32[1,{BATCH},{keys},{SIZE}]", f"reshape({value})")
        kind = _cache_kind(m.shape)
        m.lines.append(f"  {name}{layer} = {kind} parameter({m.parameters})")
        m.parameters += 1
        written = m.add(kind, f"dynamic-update-slice({name}{layer}, {row}, position, {zero}, {zero}, {zero})")
        caches.append(written)
        read = f"{name}{layer}" if m.shape.bug == "cache" and name == "value" and m.shape.degree > 1 else written
        wide = m.add(f"f32[{POSITIONS},{BATCH},{keys},{group},{SIZE}]", f"broadcast({read}), dimensions={{0,1,2,4}}")
        whole.append(m.add(f"f32[{POSITIONS},{BATCH},{heads},{SIZE}]", f"reshape({wide})"))
    scores = f"f32[{BATCH},{heads},{POSITIONS}]"
    product = m.add(
        scores, f"dot({query}, {whole[0]}), lhs_batch_dims={{0,1}}, rhs_batch_dims={{1,2}}, {_contract(2, 3)}"
    )
    places = scores.replace("f32", "s32")
    place = m.add(places, "iota(), iota_dimension=2")
    seen = m.add(scores.replace("f32", "pred"), f"compare({place}, {m.along('position', places)}), direction=LE")
    low = m.along(m.add("f32[]", "constant(-30000)"), scores)
    masked = m.add(scores, f"select({seen}, {product}, {low})")
    axis = "1" if m.shape.bug == "axis" and m.shape.degree > 1 else "2"
    likely = m.vendor("Softmax", scores, masked, config=axis)
    mixed = m.add(
        f"f32[{BATCH},{heads},{SIZE}]",
        f"dot({likely}, {whole[1]}), lhs_batch_dims={{0,1}}, rhs_batch_dims={{1,2}}, {_contract(2, 0)}",
    )
    return m.add(f"f32[{BATCH},{q}]", f"reshape({mixed})")
