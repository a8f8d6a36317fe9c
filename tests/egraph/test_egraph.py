"""The e-graph by example, and against the congruence closure computed by brute force."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from rewright.egraph import EGraph, Justification

GIVEN = Justification("relation", "given")


def test_equal_nodes_are_one_class() -> None:
    graph = EGraph()
    x, y = graph.add("x"), graph.add("y")
    assert graph.add("f", (x, y)) == graph.add("f", (x, y))
    assert graph.add("f", (y, x)) != graph.add("f", (x, y))
    assert len(graph) == 4


def test_nothing_is_looked_up_that_was_not_added() -> None:
    graph = EGraph()
    x = graph.add("x")
    assert graph.lookup("f", (x,)) is None
    assert graph.add("f", (x,)) == graph.lookup("f", (x,))


def test_equal_children_make_equal_nodes() -> None:
    """From x = y follows f(f(x)) = f(f(y))."""
    graph = EGraph()
    x, y = graph.add("x"), graph.add("y")
    once = [graph.add("f", (v,)) for v in (x, y)]
    twice = [graph.add("f", (v,)) for v in once]
    assert graph.union(x, y, GIVEN)
    graph.rebuild()
    assert graph.find(once[0]) == graph.find(once[1])
    assert graph.find(twice[0]) == graph.find(twice[1])
    assert not graph.union(y, x, GIVEN)


def test_a_cycle_of_equations_is_closed() -> None:
    """From f(f(f(x))) = x and f(f(f(f(f(x))))) = x follows f(x) = x."""
    graph = EGraph()
    powers = [graph.add("x")]
    for _ in range(5):
        powers.append(graph.add("f", (powers[-1],)))
    graph.union(powers[3], powers[0], GIVEN)
    graph.union(powers[5], powers[0], GIVEN)
    graph.rebuild()
    assert len({graph.find(p) for p in powers}) == 1
    assert graph.lookup("f", (powers[4],)) == graph.find(powers[0])


def test_identities_stay_valid_and_name_the_node_that_was_added() -> None:
    graph = EGraph()
    x, y = graph.add("x"), graph.add("y")
    f = graph.add("f", (y,))
    graph.union(x, y, GIVEN)
    graph.rebuild()
    assert graph.node(f) == ("f", (y,))
    assert graph.node(y) == ("y", ())
    assert sorted(label for label, _ in graph.nodes(x)) == ["x", "y"]
    assert graph.add("f", (x,)) == graph.find(f)


def test_an_explanation_is_a_chain_of_recorded_equations() -> None:
    graph = EGraph()
    a, b, c, d = (graph.add(name) for name in "abcd")
    f, g = graph.add("f", (a,)), graph.add("f", (c,))
    graph.union(a, b, Justification("rule", "first"))
    graph.union(c, b, Justification("rule", "second"))
    graph.rebuild()
    chain = graph.explain(a, c)
    assert chain is not None
    assert [(e.left, e.right, e.why.detail) for e in chain] == [(a, b, "first"), (b, c, "second")]
    (step,) = graph.explain(f, g) or ()
    assert {step.left, step.right} == {f, g}
    assert step.why.rule == "congruence"
    assert graph.explain(a, d) is None
    assert graph.explain(a, a) == []


Equations = list[tuple[int, int]]
TERMS = 14


def terms(graph: EGraph) -> list[int]:
    """Two constants, f of everything and g of pairs."""
    found = [graph.add("a"), graph.add("b")]
    found += [graph.add("f", (found[0],)), graph.add("f", (found[1],))]
    found += [graph.add("f", (found[2],)), graph.add("f", (found[3],))]
    found += [graph.add("g", (x, y)) for x, y in product(found[:4:2], found[1:5:3])]
    found += [graph.add("g", (x, x)) for x in found[:4]]
    return found


def closure(graph: EGraph, ids: list[int], equations: Equations) -> list[int]:
    """The least congruence with some equations, by trying all pairs until nothing changes."""
    place = {identity: k for k, identity in enumerate(ids)}
    names = list(range(len(ids)))

    def join(x: int, y: int) -> bool:
        old, new = names[y], names[x]
        names[:] = [new if n == old else n for n in names]
        return old != new

    for x, y in equations:
        join(x, y)
    changed = True
    while changed:
        changed = False
        for x, y in product(range(len(ids)), repeat=2):
            (label, left), (other, right) = graph.node(ids[x]), graph.node(ids[y])
            alike = [names[place[c]] for c in left] == [names[place[c]] for c in right]
            changed |= label == other and len(left) > 0 and alike and join(x, y)
    return names


@given(st.lists(st.tuples(st.integers(0, TERMS - 1), st.integers(0, TERMS - 1)), max_size=6))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_classes_are_those_of_the_congruence_closure(equations: Equations) -> None:
    graph = EGraph()
    ids = terms(graph)
    assert len(ids) == TERMS
    wanted = closure(graph, ids, equations)
    for x, y in equations:
        graph.union(ids[x], ids[y], GIVEN)
        graph.rebuild()
    for x, y in product(range(TERMS), repeat=2):
        same = graph.find(ids[x]) == graph.find(ids[y])
        assert same == (wanted[x] == wanted[y])
        chain = graph.explain(ids[x], ids[y])
        assert (chain is not None) == same
        if chain:
            ends = [ids[x], *(e.right for e in chain)]
            assert [e.left for e in chain] == ends[:-1]
            assert ends[-1] == ids[y]


def test_the_same_steps_give_the_same_identities() -> None:
    def steps() -> tuple[list[int], list[tuple[int, int]]]:
        graph = EGraph()
        ids = terms(graph)
        graph.union(ids[0], ids[3], GIVEN)
        graph.union(ids[1], ids[6], GIVEN)
        graph.rebuild()
        chain = graph.explain(ids[8], ids[9]) or []
        return [graph.find(i) for i in ids], [(e.left, e.right) for e in chain]

    assert steps() == steps()
