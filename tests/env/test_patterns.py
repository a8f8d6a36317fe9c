"""Rules of the library and rewrites of the user's own as alternatives, beside XLA's passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import gymnasium
import pytest

from rewright.env.agents import always_first
from rewright.env.custom import Rewrite
from rewright.env.dryrun import dry_run
from rewright.env.episode import Episode, Settings
from rewright.env.evidence import evidence_for
from rewright.env.module import HloModule
from rewright.env.registration import register
from rewright.env.session import Session
from rewright.env.trajectory import replay
from rewright.frontends.hlo.module import Instruction, Module
from rewright.frontends.hlo.wire import BYTES
from rewright.ir.errors import RewrightError
from rewright.rules.pattern import floats
from rewright.rules.rule import rule
from rewright.terms.parameters import size
from tests.env.modules import LOOP, RATES

PRODUCTS = """HloModule products
ENTRY main {
  a = f32[6,4] parameter(0)
  b = f32[6,4] parameter(1)
  c = f32[6,4] parameter(2)
  p = f32[6,4] multiply(a, b)
  q = f32[6,4] multiply(a, c)
  s = f32[6,4] add(p, q)
  t = f32[4,6] transpose(s), dimensions={1,0}
  u = f32[6,4] transpose(t), dimensions={1,0}
  ROOT r = f32[6,4] tanh(u)
}
"""
N, M = size("n"), size("m")


def known(run, seconds: float = 5.0) -> dict[str, str]:
    """By the name of the rule, what is known of its alternatives."""
    found: dict[str, str] = {}
    for number, alternative in enumerate(run.graph.alternatives):
        test = run.tests[number] if run.tests else None
        found[alternative.provenance.name] = evidence_for(run.graph, number, test, seconds).status
    return found


def test_every_match_of_every_rule_is_an_alternative_that_is_proved(xla: Session) -> None:
    run = dry_run(xla, xla.parse(PRODUCTS), ["rules"])
    found = known(run)
    assert {"distribute", "multiply-commutes", "add-commutes"} <= found.keys()
    assert set(found.values()) == {"proved"}


def test_a_rule_by_name_is_applied(xla: Session) -> None:
    run = dry_run(xla, xla.parse(PRODUCTS), ["rule:distribute"])
    assert len(run) == 1
    opcodes = [i.opcode for i in run.apply([0]).program.main.instructions.values()]
    assert (opcodes.count("multiply"), opcodes.count("add")) == (1, 1)


def test_passes_and_rules_share_one_graph(xla: Session) -> None:
    run = dry_run(xla, xla.parse(RATES), ["algsimp", "rules"])
    assert {a.provenance.source for a in run.graph.alternatives} == {"xla", "rule"}
    assert run.graph.conflicts()


def test_a_rule_with_conditions_on_elements_is_offered_where_they_hold(xla: Session) -> None:
    text = """HloModule m
    ENTRY main { x = f32[4] parameter(0) c = f32[] constant(%s) b = f32[4] broadcast(c), dimensions={}
      d = f32[4] divide(x, b) ROOT r = f32[4] tanh(d) }"""
    # A / c = A (1 / c) needs a c that is not zero.
    assert len(dry_run(xla, xla.parse(text % "4"), ["rule:divide-constant"])) == 1
    assert len(dry_run(xla, xla.parse(text % "0"), ["rule:divide-constant"])) == 0


def test_a_rule_that_does_not_exist_is_one_line(xla: Session) -> None:
    with pytest.raises(RewrightError, match=r"no rule 'distribut'; did you mean .*distribute"):
        dry_run(xla, xla.parse(PRODUCTS), ["rule:distribut"])


A, B = floats("A", N, M), floats("B", N, M)
RIGHT = rule("sum-of-products", "A B + A C = A (C + B)", A * B + A * floats("C", N, M), A * (floats("C", N, M) + B))
WRONG = rule("product-is-sum", "A B = A + B", A * B, A + B)


def test_a_pattern_of_ones_own_is_proved_and_a_wrong_one_is_not_offered(xla: Session) -> None:
    run = dry_run(xla, xla.parse(PRODUCTS), [], patterns=[RIGHT, WRONG])
    assert known(run) == {"sum-of-products": "proved", "product-is-sum": "refuted"}
    assert run.offered == [True, False, False]


def _cosines(program: Module) -> Module:
    """Every cosine a sine."""
    main = program.main
    changed = {n: replace(i, opcode="sine") if i.opcode == "cosine" else i for n, i in main.instructions.items()}
    return program.with_computation(replace(main, instructions=changed))


def test_a_function_is_split_and_what_it_breaks_is_not_offered(xla: Session) -> None:
    run = dry_run(xla, xla.parse(RATES), [], patterns=[Rewrite("sines", _cosines)])
    assert run.offered == [False]
    with pytest.raises(RewrightError, match="fails"):
        dry_run(xla, xla.parse(LOOP), [], patterns=[Rewrite("broken", lambda program: program.nothing)])


def _rooted_at(name: str) -> Rewrite:
    return Rewrite("root", lambda program: program.with_computation(replace(program.main, root=name)))


def _reads(name: str) -> Rewrite:
    """Every cosine reads another value, or itself."""

    def changed(program: Module) -> Module:
        own = program.main.instructions
        new = {n: replace(i, operands=(name or n,)) if i.opcode == "cosine" else i for n, i in own.items()}
        return program.with_computation(replace(program.main, instructions=new))

    return Rewrite("reads", changed)


@pytest.mark.parametrize(
    ("rewrite", "said"),
    [
        (Rewrite("none", lambda program: None), "gives no program but None"),  # pyright: ignore
        (_rooted_at("nothing"), "gives what is no module"),
        (_reads("nothing"), "gives what is no module .*nothing"),
        (_reads(""), "gives what is no module .*its own result"),
        # A scalar in the place of an array.
        (_reads("five.1"), "gives what is no module"),
    ],
    ids=["no program", "no such root", "no such operand", "a circle", "another shape"],
)
def test_a_function_that_makes_no_module_is_one_line(xla: Session, rewrite: Rewrite, said: str) -> None:
    with pytest.raises(RewrightError, match=said) as caught:
        dry_run(xla, xla.parse(RATES), [], patterns=[rewrite])
    assert "\n" not in str(caught.value)


def _every(opcode: str, change: Callable[[Instruction], Instruction]) -> Rewrite:
    """A change of every instruction of an operator, in every computation."""

    def changed(program: Module) -> Module:
        for own in program.computations.values():
            new = {n: change(i) if i.opcode == opcode else i for n, i in own.instructions.items()}
            program = program.with_computation(replace(own, instructions=new))
        return program

    return Rewrite(opcode, changed)


CALLS = """HloModule calls
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
by { a = f32[] parameter(0) b = f32[] parameter(1) ROOT l = pred[] compare(a, b), direction=LT }
no { a = f32[4] parameter(0) ROOT r = f32[4] negate(a) }
yes { a = f32[4] parameter(0) ROOT r = f32[4] abs(a) }
ENTRY main { x = f32[4] parameter(0) y = f32[4] parameter(1) m = f32[4,4] parameter(2) k = s32[] parameter(3)
  n = s32[4] parameter(4) z = f32[] constant(0) p = f32[4] reduce(m, z), dimensions={1}, to_apply=add
  q = f32[4] sort(y), dimensions={0}, to_apply=by c = s32[] constant(2) d = pred[] compare(k, c), direction=GE
  e = f32[4] conditional(d, x, x), true_computation=no, false_computation=yes f = f32[4] subtract(x, y)
  g = f32[4] dot(m, x), lhs_contracting_dims={1}, rhs_contracting_dims={0} t = s32[] constant(2)
  u = s32[4] broadcast(t), dimensions={} v = s32[4] divide(n, u) w = f32[4,4] transpose(m), dimensions={1,0}
  i = f32[4] call(f), to_apply=no
  ROOT r = (f32[4], f32[4], f32[4], f32[4], f32[4], s32[4], f32[4,4]) tuple(p, q, e, i, g, v, w) }"""
SWAPPED = {
    "subtract": lambda i: replace(i, operands=i.operands[::-1]),
    "divide": lambda i: replace(i, opcode="shift-right-arithmetic"),
    "negate": lambda i: replace(i, opcode="abs"),
    "compare": lambda i: i.with_field(63, BYTES, b"NE"),
    "conditional": lambda i: replace(i, called=i.called[::-1]),
    "transpose": lambda i: replace(i, opcode="copy", fields=tuple(f for f in i.fields if f[0] != 14)),
    "add": lambda i: replace(i, opcode="maximum"),
}


@pytest.mark.parametrize("opcode", SWAPPED)
def test_what_breaks_a_module_is_refuted_at_its_site(xla: Session, opcode: str) -> None:
    run = dry_run(xla, xla.parse(CALLS), [], patterns=[_every(opcode, SWAPPED[opcode])])
    found = [evidence_for(run.graph, n, run.tests[n], 5).status for n in range(len(run))]
    assert found
    assert "proved" not in found
    assert "refuted" in found
    assert not any(offered for offered, status in zip(run.offered, found, strict=True) if status == "refuted")


def test_a_trajectory_with_a_pattern_is_run_again_with_it(xla: Session) -> None:
    episode = Episode(xla, xla.parse(PRODUCTS), Settings((), patterns=(RIGHT,)))
    assert episode.choose(0)
    written = episode.to_json()
    assert replay(xla, written, [RIGHT]).cost == episode.cost
    with pytest.raises(RewrightError, match="sum-of-products"):
        replay(xla, written)


def test_the_environment_offers_rules_and_patterns(xla: Session) -> None:
    register()
    names = {"hlo": xla.parse(PRODUCTS), "passes": ["rules"], "patterns": [RIGHT], "session": xla}
    env = gymnasium.make("rewright/HloRewrite-v0", disable_env_checker=True, **names).unwrapped
    env.reset(seed=0)
    assert env.action_masks()[: len(env.episode.run)].any()
    assert env.episode.fork() is not env.episode
    assert always_first(env.episode, env.np_random).validate().agrees


def test_values_keep_their_names_where_a_fusion_has_one_of_the_same(xla: Session) -> None:
    # A proto has no name twice: in it the entry's n is another name, while the program still calls it n.
    text = """HloModule m
    f { x = f32[6,4] parameter(0) m = f32[6,4] negate(x) ROOT o = f32[6,4] abs(m) }
    ENTRY main { a = f32[6,4] parameter(0) b = f32[6,4] parameter(1) g = f32[6,4] fusion(a), kind=kLoop, calls=f
      n = f32[6,4] tanh(b) p = f32[6,4] multiply(n, g) q = f32[6,4] multiply(n, b) ROOT r = f32[6,4] add(p, q) }"""
    program = xla.parse(text).program
    body = program.computations[next(name for name in program.computations if name != program.entry)]
    taken = next(i for i in program.main.instructions.values() if i.opcode == "tanh").name
    old = next(i for i in body.instructions.values() if i.opcode == "negate")
    inner = {taken if name == old.name else name: i for name, i in body.instructions.items()}
    inner[taken] = replace(old, name=taken)
    inner[body.root] = replace(inner[body.root], operands=(taken,))
    module = HloModule(program.with_computation(replace(body, instructions=inner)), late=True)
    run = dry_run(xla, module, ["general-fusion", "rule:distribute"], tested=False)
    known = run.graph.program.main.instructions.keys() | run.graph.pool[program.entry].keys()
    read = [o for i in run.graph.pool[program.entry].values() for o in i.operands]
    assert any(a.provenance.name == "distribute" for a in run.graph.alternatives)
    assert set(read) <= known
