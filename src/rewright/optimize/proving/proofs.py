"""Proofs about plans: that the program is the plan's graph, and that every running state may follow the others.

The first is asked of the engine of ``refine``, whose certificate the independent checker confirms, and where it has
no law for it, of the prover of rules. The second is the identity ``f(x, m') = f(x, m) * g(m, m')`` of every update by a
factor, for all x, m and m', and those of ``growing`` and ``resetting`` of every update by an addend or a reset.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from rewright import ops
from rewright.equiv.engine import equiv
from rewright.equiv.pieces import premises
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType, TensorType
from rewright.optimize.kernel import Kernel, Running
from rewright.optimize.online.update import Estimate, Update
from rewright.optimize.planning.plan import Plan, writes
from rewright.optimize.planning.preparing import prepare_with_places
from rewright.optimize.proving.claims import claim_of, key_of, shape_of
from rewright.optimize.proving.composing import Known, compose_proof
from rewright.optimize.proving.masks import with_mask_inputs
from rewright.optimize.proving.pieces import prove_piece
from rewright.optimize.proving.refusal import NotComposed
from rewright.optimize.proving.regraph import NoGraph, function_of, regraph, store_graphs
from rewright.optimize.proving.trusted import Trust
from rewright.optimize.scalars.expressions import Expression, contains
from rewright.refine.engine import answer
from rewright.terms.claim import Claim
from rewright.terms.normal.prove import prove

_PRODUCTS = ("multiply", "divide", "exponential", "add", "subtract", "negate")
"""What factors that leave a sum are made of: they may come out of an exponential."""


def trust(
    plan: Plan,
    seconds: float = 5.0,
    program: Graph | None = None,
    hurried: bool = False,
    known: Known | None = None,
) -> Trust:
    """What can be proved about a plan within a time; ``program`` is what was prepared for planning, where that changed.

    A certificate of a short program is looked for as a whole first, and that of a long one in pieces, which takes time
    in proportion to the layers that differ. Where there is none, a short program is proved as one claim, or tensor by
    tensor: every stored tensor is what the program makes of the stored tensors that its kernel reads. All of that
    takes ``seconds`` for a short program, and so many for each piece of a long one. When ``hurried``, a long one is not
    looked at as a whole once there are tensors that are not proved: without what they look up there may be a proof,
    for which ``known`` keeps the pieces that were proved.
    """
    started = time.process_time()
    found, given = Trust(), plan.graph if program is None else program
    short = len(given.nodes) <= WHOLE
    clock = _Clock(time.process_time() + seconds if short else math.inf, seconds, known or Known())
    try:
        for way in (_whole, _in_pieces) if short and _stored(plan) == 1 else (_in_pieces, _whole):
            way(plan, given, found, clock)
            if found.evidence == "proved" or (hurried and not short and found.unproved):
                break
        if found.evidence != "proved" and short:
            _by_tensors(plan, found, clock)
            if found.evidence == "proved" and program is not None:
                _preparation(program, plan.graph, found, clock.share())
    except NoGraph as error:
        found.reason, found.unproved = str(error), error.tensors
    except TimeoutError:
        found.reason = f"the budget of {seconds:g} s is used up; {found.reason or 'nothing is known'}"
    found.seconds = time.process_time() - started
    return found


@dataclass(frozen=True)
class _Clock:
    """The time that proofs have left, of the processor: a machine that is busy with something else proves as much."""

    deadline: float
    each: float
    known: Known

    def share(self) -> float:
        """Seconds for the next proof; half of what is left is for those after it. Raises TimeoutError without any."""
        left = self.deadline - time.process_time()
        if left <= 0:
            raise TimeoutError
        return min(self.each, max(left / 2, LEAST))


LEAST = 0.5
"""Seconds that a proof gets that is begun."""
WHOLE = 80
"""Programs of at most this many nodes are proved as one claim where they have no certificate."""


def _preparation(program: Graph, ready: Graph, found: Trust, seconds: float) -> None:
    """That what was planned is the program: the checker confirms a certificate, or the prover says so."""
    if why := why_unequal(program, ready, seconds):
        found.evidence = "tested"
        found.reason = f"the plan is proved, and not that reductions along several axes may be split: {why}"


def why_unequal(one: Graph, other: Graph, seconds: float) -> str:
    """Why two graphs are not known to be one function; empty where the checker or the prover confirms that they are."""
    relations = {"*": "Replicate()"} if one.inputs else None
    verdict = answer(one, [other], relations, None, seconds, suggest=False, audit=True, rounds=False)
    certified = verdict.status == "proved" and verdict.evidence.name == "PROVED"
    return "" if certified or prove(Claim(one, other), seconds).status == "proved" else verdict.reason


def _whole(plan: Plan, program: Graph, found: Trust, clock: _Clock) -> None:
    """The program as a whole."""
    why = _certify(program, regraph(plan, as_computed=False), found, clock)
    if found.certificate is not None:
        found.evidence, found.reason = "proved", "the checker confirmed the certificate"
        _identities(plan, found, clock.each, whole=False)
        return
    found.reason = why
    if len(program.nodes) > WHOLE:
        return
    written = regraph(plan)
    if prove(Claim(program, written), clock.share()).status == "proved":
        found.graph = written
        found.evidence, found.reason = "proved", "the program and the plan have one normal form"
        _identities(plan, found, clock.each, whole=True)


def _in_pieces(plan: Plan, program: Graph, found: Trust, clock: _Clock) -> None:
    """The program as stored tensors that are proved one by one, with one certificate for all of them."""
    ready, made = prepare_with_places(program)
    if ready.nodes != plan.graph.nodes or _stored(plan) < 2:
        return
    try:
        share = clock.share() / 2
        total = 2 * share if len(program.nodes) <= WHOLE else math.inf
        proof = compose_proof(prove_piece, program, plan, made, share, total, clock.known)
    except NotComposed as error:
        found.reason, found.unproved = str(error), error.tensors
        return
    count, uses = len(proof.certificate.pieces), len(proof.certificate.uses)
    found.certificate, found.program, found.graph = proof.certificate, proof.program, proof.written
    found.evidence = "proved"
    found.reason = f"the checker confirmed the certificate: {uses} tensors, in {count} pieces that differ"
    found.assumptions = premises(proof.certificate, proof.program)
    _identities(plan, found, clock.each, whole=False)


def _stored(plan: Plan) -> int:
    """The tensors that a plan stores."""
    return sum(len(writes(step)) for step in plan.steps)


def _by_tensors(plan: Plan, found: Trust, clock: _Clock) -> None:
    """One claim for each stored tensor; equal claims are proved once."""
    known: dict[tuple[object, ...], bool] = {}
    for kernel in plan.kernels:
        for store in kernel.stores:
            plain = store_graphs(plan, kernel, store, as_computed=False)
            left, right = (with_mask_inputs(g) for g in plain)
            order = {name: number for number, name in enumerate([*left.inputs, *right.inputs])}
            key = (shape_of(left, order), shape_of(right, order))
            if key not in known:
                sides = claim_of([left, right])
                outcome = prove(sides, clock.share())
                if outcome.status != "proved":
                    key = (*key, plain[0].nodes)  # with these conditions, and not for all
                    outcome = prove(claim_of(list(plain)), clock.share())
                why = "" if outcome.status == "proved" else _certify(sides.left, sides.right, found, clock)
                known[key] = outcome.status == "proved" or found.certificate is not None
                if not known[key]:
                    node = plan.graph.nodes[store.tensor]
                    found.reason = f"{node.op.name} at {node.span} is not proved: {outcome.reason}; {why}"
                    found.unproved = (*found.unproved, store.tensor)
            found.certificate = None  # of one tensor, and not of the program
            if not known[key]:
                return
    found.evidence, found.reason = (
        "proved",
        "every stored tensor is what the program makes of the stored tensors that it reads",
    )
    _identities(plan, found, clock.each, whole=False)


def _certify(graph: Graph, written: Graph, found: Trust, clock: _Clock) -> str:
    """Ask for a certificate that the checker confirms; returns why there is none.

    The engine of ``refine`` is asked first. Where operators differ by more than it lifts, such as look-ups that are
    written along other axes, that of ``equiv`` proves the parts as lemmas, which its certificate states.
    """
    try:
        relations = {"*": "Replicate()"} if graph.inputs else None
        seconds = clock.share()
        # Nothing is run here: kernels are, all together.
        verdict = answer(
            graph, [written], relations, None, seconds, suggest=False, audit=True, rounds=False, runs="never"
        )
        if verdict.status != "proved" or verdict.evidence.name != "PROVED":
            verdict = equiv(graph, written, budget=clock.share(), explain=False)
    except RewrightError as error:
        return str(error)
    if verdict.status == "proved" and verdict.evidence.name == "PROVED":
        found.certificate, found.program, found.graph = verdict.certificate, graph, written
        found.assumptions = tuple(dict.fromkeys((*found.assumptions, *verdict.assumptions)))
    return verdict.reason


def _identities(plan: Plan, found: Trust, seconds: float, whole: bool) -> None:
    """The identities that a kernel relies on besides: of running states, and of factors that leave a sum."""
    why = unproved_identity(plan, found.updates, seconds, whole)
    if why:
        found.evidence, found.reason = "tested", why


def unproved_identity(plan: Plan, updates: list[str], seconds: float, whole: bool = True) -> str:
    """The first identity of a plan's states that has no proof, and why; the others are added to ``updates``."""
    known: set[object] = set()
    for kernel in plan.kernels:
        for what, claim in _kernel_claims(kernel, whole):
            key = key_of(claim)
            if key not in known and (outcome := prove(claim, seconds)).status != "proved":
                return f"{what}: not proved, {outcome.reason}"
            known.add(key)
            if (text := f"{kernel.name}: {what}") not in updates:
                updates.append(text)
    return ""


def _kernel_claims(kernel: Kernel, whole: bool) -> Iterator[tuple[str, Claim]]:
    """The identities that a kernel relies on beside its graph, in words and as claims."""
    for sweep in kernel.sweeps:
        for product in sweep.products:
            yield "operands of tiles", factors_claim(product.value.arguments[0], (product.left, product.right))
        states = {r.value.number: r.body for r in sweep.running if r.value.bound and r.value.bound.kind == "sum"}
        for estimate, left in sweep.remainders:
            yield "what is left of a mean", remainder_claim(states[estimate.sum.number], estimate, left)
        for running in sweep.running:
            yield from _claims(running, whole, states)
            if running.factors is not None:
                yield "operands of tiles", factors_claim(running.body, running.factors)


def factors_claim(body: Expression, factors: tuple[Expression, Expression]) -> Claim:
    """``body = left * right`` over scalars: what two tiles are multiplied for is what their product is read as."""
    sides: list[Graph] = []
    for whole in (True, False):
        writer = _Scalars(Update(body), _PRODUCTS)
        parts = [writer.value(e, False) for e in ((body,) if whole else factors)]
        writer.builder.output("0", parts[0] if whole else writer.builder.add(ops.Multiply(), *parts))
        sides.append(writer.builder.build())
    return claim_of(sides)


def _claims(running: Running, whole: bool, states: Mapping[int, Expression]) -> list[tuple[str, Claim]]:
    """The identities of one running state, in words and as claims; ``states`` are the bodies of those of its pass."""
    claims: list[tuple[str, Claim]] = []
    if running.update.depends and running.update.reset is None:
        kinds = ", ".join(e.bound.kind for e in running.update.depends if e.bound)
        claims.append((f"a sum follows the running {kinds} of the same pass", update_claim(running.update, states)))
    if running.update.reset is not None:
        (e,) = running.update.depends
        kinds = (running.value.bound, e.bound)
        what = " starts again when it passes the running ".join(k.kind for k in kinds if k)
        claims.append((f"a {what} of the same pass", reset_claim(running.update)))
    if running.update.finish is not None and not whole:
        claims.append(("a factor leaves a sum", finish_claim(running)))
    return claims


def finish_claim(running: Running) -> Claim:
    """``body = state's body * finish`` over scalars: sums are linear, and the finish does not depend on the lane."""
    update = running.update
    assert update.finish is not None
    sides: list[Graph] = []
    for whole in (True, False):
        writer = _Scalars(Update(update.body), _PRODUCTS)
        body = writer.value(running.value.arguments[0] if whole else update.body, False)
        if not whole:
            body = writer.builder.add(ops.Multiply(), body, writer.value(update.finish, False))
        writer.builder.output("0", body)
        sides.append(writer.builder.build())
    return claim_of(sides)


def update_claim(update: Update, states: Mapping[int, Expression] | None = None) -> Claim:
    """``f(x, m') = f(x, m) * g(m, m')`` over scalars: everything that does not depend on m is a variable.

    With a growth, what is multiplied by g is ``f(x, m) + each + h b(x, m) + ...``, b being what another one of
    the ``states`` is the sum of.
    """
    sides: list[Graph] = []
    for moved in (True, False):
        writer = _Scalars(update) if update.growth is None else _Scalars(update, _PRODUCTS)
        body = writer.value(update.body, moved)
        if not moved and update.growth is not None:
            for coefficient, other in update.growth.others:
                part = writer.value((states or {})[other.number], False)
                part = writer.builder.add(ops.Multiply(), writer.value(coefficient, False), part)
                body = writer.builder.add(ops.Add(), body, part)
            if update.growth.each is not None:
                body = writer.builder.add(ops.Add(), body, writer.value(update.growth.each, False))
        if not moved and update.factor is not None:
            body = writer.builder.add(ops.Multiply(), body, writer.value(update.factor, False))
        writer.builder.output("0", body)
        sides.append(writer.builder.build())
    return claim_of(sides)


def remainder_claim(body: Expression, estimate: Estimate, left: Running) -> Claim:
    """``b(x) = e + (b(x) - e)`` over scalars: a sum is the mean for every element, and the sum of what is left."""
    sides: list[Graph] = []
    for whole in (True, False):
        writer = _Scalars(left.update, _PRODUCTS)
        value = writer.value(body if whole else left.body, False)
        if not whole:
            value = writer.builder.add(ops.Add(), writer.value(estimate.leaf, False), value)
        writer.builder.output("0", value)
        sides.append(writer.builder.build())
    return claim_of(sides)


def reset_claim(update: Update) -> Claim:
    """``f(x, e')`` is ``f(x, e)`` where e' = e, and the constant elsewhere, given that a(x) <= e <= e' (or >=).

    a(x) is what the followed extremum is taken of; everything that contains neither it nor the extremum is a variable.
    """
    assert update.reset is not None
    ((e,), (new,)) = update.depends, update.renewed
    assert e.bound is not None
    own = e.arguments[0]
    sides: list[Graph] = []
    for moved in (True, False):
        writer = _Scalars(update, own=own)
        body = writer.value(update.body, moved)
        if not moved:
            same = writer.builder.add(ops.Compare("EQ"), writer.value(new, False), writer.value(e, False))
            body = writer.builder.add(ops.Select(), same, body, writer.value(update.reset.value, False))
        writer.builder.output("0", body)
        sides.append(writer.builder.build())
    writer = _Scalars(update, own=own)
    above = ops.Compare("LE" if e.bound.kind == "maximum" else "GE")
    values = [writer.value(own, False), writer.value(e, False), writer.value(new, False)]
    for number, pair in enumerate(pairwise(values)):
        writer.builder.output(str(number), writer.builder.add(above, *pair))
    return claim_of(sides, writer.builder.build())


class _Scalars:
    """Expressions as graphs over scalars: what ``opened`` does not name, or what contains no running value, is one.

    ``own`` is a scalar too, and what contains it is opened.
    """

    def __init__(self, update: Update, opened: Collection[str] = (), own: Expression | None = None) -> None:
        self.update, self.opened, self.own = update, opened, own
        self.builder = GraphBuilder("update")
        self.known: dict[str, int] = {}

    def variable(self, name: str, dtype: DType) -> int:
        """A free scalar."""
        if name not in self.known:
            self.known[name] = self.builder.input(name, ops.Input(name, TensorType((), _plain(dtype))))
        return self.known[name]

    def number(self, value: float, dtype: DType) -> int:
        """A fixed number."""
        return self.builder.add(ops.Constant(TensorType((), _plain(dtype)), (value,)))

    def value(self, e: Expression, moved: bool) -> int:
        """An expression; parts without running values are variables."""
        for old, new in self.update.moves:
            if e is old:
                return self.variable(f"{'new' if moved else 'm'}{old.number}", e.dtype)
            if e is new:
                return self.variable(f"new{old.number}", e.dtype)
        if e.op == "constant" and e is not self.own:
            return self.number(e.value, e.dtype)
        if e.op in ("load", "reduce", "index") or not e.arguments or e is self.own:
            return self.variable(f"x{e.number}", e.dtype)
        if self.opened:
            if e.op not in self.opened and not e.op.startswith("convert_"):
                return self.variable(f"x{e.number}", e.dtype)
        elif not any(contains(e, x) for x in (*self.update.depends, *self.update.renewed, self.own) if x is not None):
            return self.variable(f"x{e.number}", e.dtype)
        if e.op.startswith("convert_") and e.dtype.is_float:
            inner = self.value(e.arguments[0], moved)
            return inner if e.arguments[0].dtype.is_float else self.builder.add(ops.Convert(_plain(e.dtype)), inner)
        return self.builder.add(function_of(e), *(self.value(a, moved) for a in e.arguments))


def _plain(dtype: DType) -> DType:
    """One float type for all: a claim about scalars is about real numbers."""
    return DType.F32 if dtype.is_float else dtype
