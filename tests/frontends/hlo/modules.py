"""HLO texts for tests."""

from __future__ import annotations

from rewright.frontends.hlo.proto import read
from rewright.frontends.hlo.reading import lower
from rewright.frontends.hlo.text import parse
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram


def read_text(source: str, devices: int | None = None) -> Graph | RankProgram:
    """The program in an HLO text."""
    return lower(parse(source), devices)


def read_proto(data: bytes, devices: int | None = None) -> Graph | RankProgram:
    """The program in a serialised HloModuleProto."""
    return lower(read(data), devices)


REGION = """
region_sum {
  p0 = f32[] parameter(0)
  p1 = f32[] parameter(1)
  ROOT r = f32[] add(p0, p1)
}

region_max {
  q0 = f32[] parameter(0)
  q1 = f32[] parameter(1)
  ROOT m = f32[] maximum(q0, q1)
}
"""


def llama(degree: int = 1, layers: int = 1, broken: bool = False) -> str:
    """Layers of grouped attention and a gated network over ``degree`` replicas, as transformers-neuronx writes them.

    Tokens 4, hidden 16, 8 query heads and 4 key heads of size 2, inner 32, vocabulary 48; states are (hidden, tokens).
    """
    t, lines = degree, list[str]()
    lines += [f"  x = f32[16,4]{{1,0}} parameter(0)", f"  head = f32[16,{48 // t}] parameter(1)"]  # noqa: F541
    heads, keys, wide = 8 // t, 4 // t, 32 // t
    columns = 2 * heads + 4 * keys
    state = "x"
    for k in range(layers):
        shapes = {"norm": "16", "qkv": f"16,{columns}", "out": f"16,{2 * heads}", "gate": f"16,{wide}",
                  "up": f"16,{wide}", "down": f"16,{wide}"}  # fmt: skip
        for place, (name, sizes) in enumerate(shapes.items()):
            lines.append(f"  {name}{k} = f32[{sizes}] parameter({2 + 6 * k + place})")
        state = _layer(lines, state, k, t, heads, keys, wide, broken)
    lines += [
        f"  logits = f32[{48 // t},4] dot(head, {state}), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}",
        f"  ROOT result = (f32[{48 // t},4], f32[4,{keys},2]) tuple(logits, key{layers - 1})",
    ]
    return "HloModule llama\n" + REGION + "\nENTRY main {\n" + "\n".join(lines) + "\n}\n"


def _reduced(lines: list[str], name: str, source: str, t: int) -> str:
    groups = "{{" + ",".join(map(str, range(t))) + "}}"
    if t > 1:
        lines.append(f"  {name} = f32[16,4] all-reduce({source}), replica_groups={groups}, to_apply=region_sum")
    return name if t > 1 else source


def _layer(lines: list[str], x: str, k: int, t: int, heads: int, keys: int, wide: int, broken: bool) -> str:
    q, kv, group = 2 * heads, 2 * keys, heads // keys
    lines += [
        f"  eps{k} = f32[] constant(0.0009765625)",
        f'  n{k} = f32[16,4] custom-call({x}, norm{k}, eps{k}), custom_call_target="AwsNeuronRmsNorm", '
        'backend_config="0"',
        f"  j{k} = f32[4,{q + 2 * kv}] dot(n{k}, qkv{k}), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}",
        f"  qs{k} = f32[4,{q}] slice(j{k}), slice={{[0:4], [0:{q}]}}",
        f"  ks{k} = f32[4,{kv}] slice(j{k}), slice={{[0:4], [{q}:{q + kv}]}}",
        f"  vs{k} = f32[4,{kv}] slice(j{k}), slice={{[0:4], [{q + kv}:{q + 2 * kv}]}}",
        f"  query{k} = f32[4,{heads},2] reshape(qs{k})",
        f"  key{k} = f32[4,{keys},2] reshape(ks{k})",
        f"  value{k} = f32[4,{keys},2] reshape(vs{k})",
    ]
    for name in ("key", "value"):
        lines += [
            f"  w{name}{k} = f32[4,{keys},{group},2] broadcast({name}{k}), dimensions={{0,1,3}}",
            f"  r{name}{k} = f32[4,{heads},2] reshape(w{name}{k})",
        ]
    lines += [
        f"  s{k} = f32[{heads},4,4] dot(query{k}, rkey{k}), lhs_batch_dims={{1}}, rhs_batch_dims={{1}}, "
        "lhs_contracting_dims={2}, rhs_contracting_dims={2}",
        f"  low{k} = f32[] constant(-inf)",
        f"  m{k} = f32[{heads},4] reduce(s{k}, low{k}), dimensions={{2}}, to_apply=region_max",
        f"  mb{k} = f32[{heads},4,4] broadcast(m{k}), dimensions={{0,1}}",
        f"  d{k} = f32[{heads},4,4] subtract(s{k}, mb{k})",
        f"  e{k} = f32[{heads},4,4] exponential(d{k})",
        f"  zero{k} = f32[] constant(0)",
        f"  t{k} = f32[{heads},4] reduce(e{k}, zero{k}), dimensions={{2}}, to_apply=region_sum",
        f"  tb{k} = f32[{heads},4,4] broadcast(t{k}), dimensions={{0,1}}",
        f"  p{k} = f32[{heads},4,4] divide(e{k}, tb{k})",
        f"  a{k} = f32[{heads},4,2] dot(p{k}, rvalue{k}), lhs_batch_dims={{0}}, rhs_batch_dims={{1}}, "
        "lhs_contracting_dims={2}, rhs_contracting_dims={0}",
        f"  at{k} = f32[4,{heads},2] transpose(a{k}), dimensions={{1,0,2}}",
        f"  af{k} = f32[4,{q}] reshape(at{k})",
        f"  o{k} = f32[16,4] dot(out{k}, af{k}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}",
    ]
    attended = f"o{k}" if broken else _reduced(lines, f"or{k}", f"o{k}", t)
    lines += [
        f"  h{k} = f32[16,4] add({attended}, {x})",
        f"  g{k} = f32[{wide},4] dot(gate{k}, h{k}), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}",
        f"  l{k} = f32[{wide},4] logistic(g{k})",
        f"  u{k} = f32[{wide},4] dot(up{k}, h{k}), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}",
        f"  gl{k} = f32[{wide},4] multiply(g{k}, l{k})",
        f"  gu{k} = f32[{wide},4] multiply(gl{k}, u{k})",
        f"  dn{k} = f32[16,4] dot(down{k}, gu{k}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
    ]
    lines.append(f"  y{k} = f32[16,4] add({_reduced(lines, f'dr{k}', f'dn{k}', t)}, h{k})")
    return f"y{k}"


def relations(degree: int, layers: int) -> dict[str, str]:
    """How the inputs of :func:`llama` are placed; the fused weight holds a rank's queries, then keys, then values."""
    found = {"x": "Replicate()", "head": "Shard(1)"}
    q, kv = 16 // degree, 8 // degree
    for k in range(layers):
        parts = [
            f"qkv{k}@{rank}[:, {low}:{high}]"
            for low, high in ((0, q), (q, q + kv), (q + kv, q + 2 * kv))
            for rank in range(degree)
        ]
        found |= {f"norm{k}": "Replicate()", f"qkv{k}": f"concat([{', '.join(parts)}], axis=1)"}
        found |= {f"{name}{k}": "Shard(1)" for name in ("out", "gate", "up", "down")}
    return found
