"""What is refused at both ends of a certificate, and in the stretches that repeat."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from rewright import ops
from rewright.claims.language import Apply, Fold, Input, View, applies
from rewright.ir.digest import digest
from rewright.ir.graph import Graph, Node
from rewright.ir.operator import Operator
from rewright.ir.placement import Mesh, RankProgram, place
from rewright.ir.types import DType, TensorType
from rewright.proof.certificate import SEQUENTIAL, Certificate, Meeting, NodeEquation, Repetition
from rewright.proof.checker import Refused, audit
from rewright.refine import refine
from tests.programs import Builder, Pair, mlp, sequence_parallel_norm, vocabulary_embedding
from tests.proof.programs import addends, deep, unplaced


def certified(pair: Pair) -> Certificate:
    found = refine(*pair).certificate
    assert found is not None
    return found


def with_node(
    program: RankProgram, position: int, op: Operator | None, operands: tuple[int, ...] | None
) -> RankProgram:
    """The programs of ranks with another operator at a place, or with other operands."""

    def changed(graph: Graph) -> Graph:
        node = graph.nodes[position]
        new = Node(op or node.op, operands if operands is not None else node.operands, node.type, node.span)
        return replace(graph, nodes=(*graph.nodes[:position], new, *graph.nodes[position + 1 :]))

    return replace(program, graphs=tuple(map(changed, program.graphs)))


def about(certificate: Certificate, program: RankProgram) -> Certificate:
    return replace(certificate, ranks=tuple(map(digest, program.graphs)))


def last_layer(program: RankProgram, kind: type[Operator]) -> int:
    return max(p for p, node in enumerate(program.graphs[0].nodes) if isinstance(node.op, kind))


def test_another_operator_repeats_nothing() -> None:
    sequential, program = deep()
    wrong = with_node(program, last_layer(program, ops.Tanh), ops.Sine(), None)
    with pytest.raises(Refused, match=r"sine at .* does not repeat tanh"):
        audit(about(certified((sequential, program)), wrong), sequential, wrong)


def other_weight(program: RankProgram) -> RankProgram:
    """The last layer reads a weight of the one before."""
    graph, position = program.graphs[0], last_layer(program, ops.Tanh) - 1
    return with_node(program, position, None, (graph.nodes[position].operands[0], graph.inputs["2.up"]))


def test_an_operand_is_the_image_of_that_of_the_repeated_layer() -> None:
    sequential, program = deep()
    wrong = other_weight(program)
    with pytest.raises(Refused, match="is not the image of"):
        audit(about(certified((sequential, program)), wrong), sequential, wrong)


def test_the_images_of_terms_are_made_of_the_images_of_their_operands() -> None:
    """The last layer reads a wrong weight, which is said to stand for the right one."""
    sequential, program = deep()
    wrong, certificate = other_weight(program), certified((sequential, program))
    names = {t.content.name: n for n, t in enumerate(certificate.terms) if isinstance(t.content, Input)}
    equations = list(certificate.equations)
    number = max(n for n, e in enumerate(equations) if isinstance(e, Repetition))
    again = equations[number]
    assert isinstance(again, Repetition)
    images = tuple((a, names["2.up"] if b == names["3.up"] else b) for a, b in again.images)
    assert images != again.images
    equations[number] = replace(again, images=images)
    with pytest.raises(Refused, match="reads other terms"):
        audit(about(replace(certificate, equations=tuple(equations)), wrong), sequential, wrong)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"first": -1}, "not earlier ones"),
        ({"last": 10**6}, "not earlier ones"),
        ({"first": 3, "last": 3}, "not earlier ones"),
        ({"shifts": ()}, "cannot be repeated"),
        ({"shifts": (0, 0, 0)}, "runs earlier"),
        ({"shifts": (999, 999, 999)}, "does not exist"),
        ({"images": ((0, 999),)}, "names term 999"),
    ],
)
def test_only_earlier_equations_are_repeated_for_nodes_that_exist(change: dict[str, object], says: str) -> None:
    pair = deep()
    certificate = certified(pair)
    equations = [
        replace(e, **change) if isinstance(e, Repetition) else e  # type: ignore[arg-type]
        for e in certificate.equations
    ]
    with pytest.raises(Refused, match=says):
        audit(replace(certificate, equations=tuple(equations)), *pair)


def test_a_layer_is_not_repeated_beyond_the_end() -> None:
    """The first node of what is repeated exists, and the last one does not."""
    pair = deep()
    certificate = certified(pair)
    number = max(n for n, e in enumerate(certificate.equations) if isinstance(e, Repetition))
    again = certificate.equations[number]
    assert isinstance(again, Repetition)
    block = certificate.equations[again.first : again.last]
    inside = [step.position for step in block if isinstance(step, NodeEquation) and step.program == 0]
    count = len(pair[1].graphs[0].nodes)
    beyond = count - max(inside)
    assert min(inside) + beyond < count
    moved = replace(again, shifts=(again.shifts[0], beyond, *again.shifts[2:]))
    equations = (*certificate.equations[:number], moved, *certificate.equations[number + 1 :])
    with pytest.raises(Refused, match="a node that does not exist"):
        audit(replace(certificate, equations=equations), *pair)


def test_the_images_of_terms_are_defined_like_them() -> None:
    """The last layer has another function in the sequential program, and its term is said to be the ranks' too."""
    sequential, program = deep()
    certificate = certified((sequential, program))
    position = max(p for p, node in enumerate(sequential.nodes) if isinstance(node.op, ops.Tanh))
    node = sequential.nodes[position]
    sine = Node(ops.Sine(), node.operands, node.type, node.span)
    other = replace(sequential, nodes=(*sequential.nodes[:position], sine, *sequential.nodes[position + 1 :]))
    number = max(n for n, term in enumerate(certificate.terms) if applies(term.content, "tanh"))
    terms = list(certificate.terms)
    terms[number] = replace(terms[number], content=Apply("sine", terms[number].accesses))
    with pytest.raises(Refused, match="is defined otherwise than"):
        audit(replace(certificate, sequential=digest(other), terms=tuple(terms)), other, program)


def test_numbers_are_those_of_what_there_is() -> None:
    pair = mlp(2)
    certificate = certified(pair)
    for number, equation in enumerate(certificate.equations):
        rest = certificate.equations[:number], certificate.equations[number + 1 :]
        if isinstance(equation, Meeting):
            first, *others = equation.members
            wrong = replace(equation, members=((*first[:2], 10**6), *others))
        else:
            assert isinstance(equation, NodeEquation)
            wrong = replace(equation, value=10**6)
            with pytest.raises(Refused, match="a node that does not exist"):
                audit(replace(certificate, equations=(*rest[0], replace(equation, position=10**6), *rest[1])), *pair)
        with pytest.raises(Refused, match="value 1000000, which the certificate does not have"):
            audit(replace(certificate, equations=(*rest[0], wrong, *rest[1])), *pair)
    for number, (program, name, true) in enumerate(certificate.given):
        for unknown in (10**6, true - len(certificate.values)):
            given = (*certificate.given[:number], (program, name, unknown), *certificate.given[number + 1 :])
            with pytest.raises(Refused, match=f"value {unknown}, which the certificate does not have"):
                audit(replace(certificate, given=given), *pair)
    value = certificate.values[0]
    assert isinstance(value, View)
    broken = replace(value, addends=(replace(value.addends[0], term=10**6),))
    with pytest.raises(Refused, match="value 0 is no tensor: it names term 1000000"):
        audit(replace(certificate, values=(broken, *certificate.values[1:])), *pair)


def test_a_repetition_is_not_repeated() -> None:
    pair = deep()
    certificate = certified(pair)
    number = next(n for n, e in enumerate(certificate.equations) if isinstance(e, Repetition))
    again = Repetition(number, number + 1, (0, 0, 0), ())
    equations = (*certificate.equations[: number + 1], again, *certificate.equations[number + 1 :])
    with pytest.raises(Refused, match="repeats what cannot be repeated"):
        audit(replace(certificate, equations=equations), *pair)


def test_every_input_is_what_its_relation_says() -> None:
    sequential, program = mlp(2)
    pair = unplaced((sequential, program))
    certificate = certified((sequential, program))
    relations = dict(certificate.relations)
    up = relations["up.weight"]
    swapped = replace(up, runs=up.runs[::-1])
    with pytest.raises(Refused, match=r"input 'up.weight' of the program of rank 0 does not follow"):
        audit(replace(certificate, relations={**relations, "up.weight": swapped}), *pair)
    with pytest.raises(Refused, match=r"nothing is given for input .* of the sequential program"):
        audit(replace(certificate, given=certificate.given[1:]), *pair)
    given = tuple(
        (p, n, certificate.given[1][2] if (p, n) == (SEQUENTIAL, "x") else v) for p, n, v in certificate.given
    )
    with pytest.raises(Refused, match="given another value than the tensor of that name"):
        audit(replace(certificate, given=given), *pair)
    with pytest.raises(Refused, match="is of a program that has no such input"):
        audit(replace(certificate, given=(*certificate.given, (7, "x", 0))), *pair)
    with pytest.raises(Refused, match="which has a value already"):
        audit(replace(certificate, given=(*certificate.given, certificate.given[0])), *pair)
    with pytest.raises(Refused, match="no relation tells"):
        audit(replace(certificate, relations={n: p for n, p in relations.items() if n != "x"}), *pair)
    with pytest.raises(Refused, match="'nothing', which is no input"):
        audit(replace(certificate, relations={**relations, "nothing": up}), *pair)
    with pytest.raises(Refused, match="does not fit"):
        audit(replace(certificate, relations={**relations, "x": replace(up, runs=up.runs[:1])}), *pair)
    with pytest.raises(Refused, match="does not give it the type"):
        audit(replace(certificate, relations={**relations, "down.bias": replace(up, runs=((((0, 3),),),) * 2)}), *pair)


def test_addends_are_over_the_mesh_and_are_summed() -> None:
    sequential, program = addends()
    pair = unplaced((sequential, program))
    certificate = certified((sequential, program))
    x = certificate.relations["x"]
    with pytest.raises(Refused, match="axes that the mesh does not have"):
        audit(replace(certificate, relations={**certificate.relations, "x": replace(x, partial=("dp",))}), *pair)
    with pytest.raises(Refused, match="partial under max"):
        audit(replace(certificate, relations={**certificate.relations, "x": replace(x, reduction="max")}), *pair)
    everywhere = place((2, 4), program.mesh, ["Replicate()"])
    with pytest.raises(Refused):
        audit(replace(certificate, relations={**certificate.relations, "x": everywhere}), *pair)


def summed(op: Operator) -> Pair:
    """A sum of which every rank has one addend, and what an operator makes of that."""
    sequential, of_rank = Builder("sequential"), Builder("rank")
    sequential.output("y", sequential.add(ops.Reshape((3,)), sequential.tensor("x", (3,))))
    of_rank.output("y", of_rank.add(op, of_rank.tensor("x", (3,))))
    mesh, graph = Mesh.of({"tp": 2}), of_rank.build()
    inputs, outputs = {"x": place((3,), mesh, ["Partial(sum)"])}, {"y": place((3,), mesh, ["Replicate()"])}
    return sequential.build(), RankProgram((graph, graph), mesh, inputs, outputs)


def test_every_rank_has_its_own_addend() -> None:
    """If one rank had the whole sum and the other nothing, it would be enough to send it around."""
    right, wrong = summed(ops.AllReduce("sum", ((0, 1),))), summed(ops.CollectiveBroadcast(0, ((0, 1),)))
    certificate = certified(right)
    audit(certificate, *right)
    total = next(value for program, _, value in certificate.given if program == SEQUENTIAL)
    forged = replace(
        certificate,
        ranks=tuple(map(digest, wrong[1].graphs)),
        values=(*certificate.values, View(((3,),), ())),
        given=((SEQUENTIAL, "x", total), (0, "x", total), (1, "x", len(certificate.values))),
    )
    with pytest.raises(Refused, match=r"input 'x' of the program of rank 0 does not follow"):
        audit(forged, *wrong)


def test_a_sum_of_addends_is_all_of_them() -> None:
    """If the sequential program had one addend only, a rank that sends its own around would do."""
    right, wrong = summed(ops.AllReduce("sum", ((0, 1),))), summed(ops.CollectiveBroadcast(0, ((0, 1),)))
    certificate = certified(right)
    given = {program: value for program, _, value in certificate.given}
    forged = replace(
        certificate,
        ranks=tuple(map(digest, wrong[1].graphs)),
        given=((SEQUENTIAL, "x", given[0]), (0, "x", given[0]), (1, "x", given[1])),
        equations=(NodeEquation(SEQUENTIAL, 1, given[0]), Meeting(((0, 1, given[0]), (1, 1, given[0])))),
    )
    with pytest.raises(Refused, match=r"input 'x' of the sequential program does not follow"):
        audit(forged, *wrong)


def test_addends_that_ranks_return_sum_up_to_the_output() -> None:
    """Two ranks that have all of an output each do not have addends of it."""
    sequential, program = unplaced(summed(ops.Reshape((3,))))
    mesh = program.mesh
    everywhere, addend = (place((3,), mesh, [text]) for text in ("Replicate()", "Partial(sum)"))
    pair = sequential, replace(program, inputs={"x": everywhere}, outputs={"y": everywhere})
    certificate = certified(pair)
    outputs = {"y": replace(certificate.outputs["y"], placement=addend)}
    with pytest.raises(Refused, match=r"output 'y' of rank 0 does not follow"):
        audit(replace(certificate, outputs=outputs), *unplaced(pair))


def test_addends_of_one_sum_are_of_one_part() -> None:
    sequential, program = addends()
    certificate = certified((sequential, program))
    y = certificate.outputs["y"]
    runs = (y.placement.runs[0], (((1, 1), (0, 1)), y.placement.runs[1][1]))
    outputs = {**certificate.outputs, "y": replace(y, placement=replace(y.placement, runs=runs))}
    with pytest.raises(Refused, match="an addend of another part"):
        audit(replace(certificate, outputs=outputs), *unplaced((sequential, program)))


def test_addends_of_one_sum_are_all_returned() -> None:
    """A rank that keeps its addend to itself leaves the others without it."""
    sequential, program = addends()
    certificate = certified((sequential, program))
    silent = replace(program.graphs[1], outputs={"z": program.graphs[1].outputs["z"]})
    first = replace(program, graphs=(program.graphs[0], silent), inputs={}, outputs={})
    with pytest.raises(Refused, match="one addend, and not all ranks"):
        audit(about(certificate, first), sequential, first)


def test_every_output_is_claimed_and_held() -> None:
    sequential, program = mlp(2)
    certificate = certified((sequential, program))
    pair = unplaced((sequential, program))
    with pytest.raises(Refused, match="nothing is claimed about output 'output'"):
        audit(replace(certificate, outputs={}), *pair)
    with pytest.raises(Refused, match="'more', which is no output"):
        audit(replace(certificate, outputs={**certificate.outputs, "more": certificate.outputs["output"]}), *pair)
    silent = replace(
        program, graphs=tuple(replace(graph, outputs={}) for graph in program.graphs), inputs={}, outputs={}
    )
    with pytest.raises(Refused, match="output 'output'"):
        audit(about(certificate, silent), sequential, silent)


def test_ranks_that_return_an_output_hold_all_of_it() -> None:
    """An output that only some ranks return is theirs to hold: a replica of it is enough, a part of it is not."""
    for pair, fine in ((mlp(2), True), (sequence_parallel_norm(2), False)):
        sequential, program = pair
        first = replace(
            program, graphs=(program.graphs[0], replace(program.graphs[1], outputs={})), inputs={}, outputs={}
        )
        certificate = about(certified(pair), first)
        if fine:
            audit(certificate, sequential, first)
        else:
            with pytest.raises(Refused, match="is not all of it"):
                audit(certificate, sequential, first)


def test_assumptions_are_those_of_the_proof() -> None:
    pair = vocabulary_embedding(2)
    certificate = certified(pair)
    for number in range(3):
        rest = certificate.assumptions[:number] + certificate.assumptions[number + 1 :]
        with pytest.raises(Refused, match="an assumption that the certificate does not state"):
            audit(replace(certificate, assumptions=rest), *pair)
    with pytest.raises(Refused, match="does not need: all is well"):
        audit(replace(certificate, assumptions=(*certificate.assumptions, "all is well")), *pair)


def test_what_nobody_sends_is_not_received() -> None:
    build = Builder("parallel")
    build.tensor("x", (2,))
    build.output("y", build.add(ops.Recv(1, 0, TensorType((2,), DType.F32))))
    sender = Builder("parallel")
    x = sender.tensor("x", (2,))
    sender.add(ops.Send(0, 0), x)
    sender.output("y", x)
    silent = Builder("parallel")
    silent.add(ops.Send(0, 9), silent.tensor("x", (2,)))
    silent.output("y", 0)
    sequential = Builder("sequential")
    sequential.output("y", sequential.tensor("x", (2,)))
    graph, program = sequential.build(), mlp(2)[1]
    right = RankProgram(
        (build.build(), sender.build()), program.mesh, {"x": place((2,), program.mesh, ["Replicate()"])}, {}
    )
    stuck = replace(right, graphs=(right.graphs[0], silent.build()))
    certificate = certified((graph, right))
    audit(certificate, graph, right)
    with pytest.raises(Refused, match="receives what nobody sends"):
        audit(about(certificate, stuck), graph, stuck)


def masked() -> tuple[Pair, dict[str, int]]:
    """Two rows masked by indices, of which only the first are looked up with and so known to pass."""
    nodes: dict[str, int] = {}

    def program() -> Graph:
        build = Builder("masked")
        ids = [build.tensor(f"ids{k}", (4,), DType.I64) for k in range(2)]
        rows = [build.tensor(f"w{k}", (4,)) for k in range(2)]
        three, zero = build.full(3, ids[0]), build.full(0.0, rows[0])
        build.output("sum", build.add(ops.Reduce("sum", (1,)), build.tensor("v", (4, 2))))
        build.output("found", build.take_rows(build.tensor("table", (3, 2)), ids[0]))
        for k in range(2):
            nodes[f"test{k}"] = build.add(ops.Compare("LT"), ids[k], three)
            nodes[f"kept{k}"] = build.add(ops.Select(), nodes[f"test{k}"], rows[k], zero)
        for k in range(2):
            build.output(f"kept{k}", nodes[f"kept{k}"])
        return build.build()

    return (program(), RankProgram((program(),), Mesh.of({"tp": 1}), {}, {})), nodes


def repeated(certificate: Certificate, nodes: dict[str, int], images: dict[str, int | str]) -> Certificate:
    """The second row said to be a repetition of the first, with these terms in the place of others."""
    terms = {d.content.name: t for t, d in enumerate(certificate.terms) if isinstance(d.content, Input)}
    first, second = [nodes["test0"], nodes["kept0"]], [nodes["test1"], nodes["kept1"]]
    steps = [e for e in certificate.equations if isinstance(e, NodeEquation)]
    start = steps.index(next(e for e in steps if (e.program, e.position) == (SEQUENTIAL, first[0])))
    kept = [e for e in steps if (e.program, e.position) not in [(SEQUENTIAL, p) for p in second]]
    pairs = tuple((terms[t], i if isinstance(i, int) else terms[i]) for t, i in images.items())
    kept.insert(start + 2, Repetition(start, start + 2, (second[0] - first[0], 0), pairs))  # type: ignore[arg-type]
    return replace(certificate, equations=tuple(kept))


def test_what_is_known_of_one_index_is_not_known_of_another() -> None:
    pair, nodes = masked()
    forged = repeated(certified(pair), nodes, {"ids0": "ids1", "w0": "w1"})
    with pytest.raises(Refused, match="less is known of term"):
        audit(forged, *pair)


def test_a_sum_without_its_range_stands_for_no_tensor() -> None:
    pair, nodes = masked()
    certificate = certified(pair)
    fold = next(t for t, definition in enumerate(certificate.terms) if isinstance(definition.content, Fold))
    with pytest.raises(Refused, match="needs a range"):
        audit(repeated(certificate, nodes, {"w0": fold}), *pair)


def test_what_is_read_as_far_away_is_not_what_is_read_for_that() -> None:
    def program() -> Graph:
        build = Builder("joined")
        for k in range(2):
            left, right = build.tensor(f"a{k}", (4,)), build.tensor(f"b{k}", (4,))
            build.output(f"y{k}", build.add(ops.Concatenate(0), left, right))
        return build.build()

    pair = program(), RankProgram((program(),), Mesh.of({"tp": 1}), {}, {})
    first, second = (pair[0].outputs[name] for name in ("y0", "y1"))
    certificate = certified(pair)
    steps = [e for e in certificate.equations if isinstance(e, NodeEquation)]
    start = next(n for n, e in enumerate(steps) if (e.program, e.position) == (SEQUENTIAL, first))
    terms = {d.content.name: t for t, d in enumerate(certificate.terms) if isinstance(d.content, Input)}

    def again(*names: str) -> Certificate:
        images = tuple((terms[f"{name}0"], terms[f"{name}1"]) for name in names)
        kept = [e for e in steps if (e.program, e.position) != (SEQUENTIAL, second)]
        kept.insert(start + 1, Repetition(start, start + 1, (second - first, 0), images))  # type: ignore[arg-type]
        return replace(certificate, equations=tuple(kept))

    audit(again("a", "b"), *pair)
    with pytest.raises(Refused, match="is not the image of"):
        audit(again("a"), *pair)


def test_windows_that_are_alike_are_alike_in_all_but_the_tensor() -> None:
    pair = deep()
    certificate = certified(pair)
    place_of = {(program, name): number for number, (program, name, _) in enumerate(certificate.given)}
    given = {(program, name): value for program, name, value in certificate.given}

    def refused(value: int, *more: View) -> None:
        number = place_of[0, "3.up"]
        changed = (*certificate.given[:number], (0, "3.up", value), *certificate.given[number + 1 :])
        with pytest.raises(Refused, match=r"input '3.up' of the program of rank 0 does not follow"):
            audit(replace(certificate, given=changed, values=(*certificate.values, *more)), *pair)

    refused(given[0, "2.up"])
    refused(given[1, "3.up"])
    true = certificate.values[given[0, "3.up"]]
    assert isinstance(true, View)
    fresh = len(certificate.values)
    refused(fresh, replace(true, dims=(*true.dims[:-1], (5,))))
    refused(fresh, replace(true, addends=(replace(true.addends[0], coefficient=Fraction(2)),)))
    refused(fresh, replace(true, addends=true.addends * 2))
