"""Equations that hold again for later nodes and for other terms, as those of further layers do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rewright import ops
from rewright.ir.errors import Refused
from rewright.proof.certificate import Equation, Meeting, NodeEquation, Repetition
from rewright.proof.ledger import Images, Ledger, Used


class Stretch:
    """Equations that were verified, by program: nodes, their values, and whether they read what is not repeated."""

    def __init__(self, ledger: Ledger, equations: Sequence[Equation], used: Sequence[Used]) -> None:
        self.used = Used.all(used)
        self.plain = not any(isinstance(equation, Repetition) for equation in equations)
        self.inside: dict[int, set[int]] = {}
        self.nodes: dict[int, list[tuple[int, int, bool]]] = {}
        said = [entry for equation in equations for entry in _positions(equation)]
        for program, position, _ in said:
            self.inside.setdefault(program, set()).add(position)
        for program, position, value in said:
            node = ledger.graphs[program + 1].nodes[position]
            alone = not isinstance(node.op, ops.Message) and self.inside[program].issuperset(node.operands)
            self.nodes.setdefault(program, []).append((position, value, not alone))


class Repeated:
    """A stretch for later nodes and for other terms; raises Refused where it cannot be repeated so."""

    def __init__(self, ledger: Ledger, again: Repetition, stretch: Stretch, where: str) -> None:
        self._ledger = ledger
        self._shifts = again.shifts
        self._stretch = stretch
        self._where = where
        self._images = Images(dict(again.images))
        if len(again.shifts) != len(ledger.graphs) or not stretch.plain:
            raise Refused(f"{where} repeats what cannot be repeated")
        self._check_terms()

    def ends(self) -> Iterator[tuple[int, int, int]]:
        """By program the first and the last of the later nodes, which are in order as the earlier ones are."""
        for program, inside in self._stretch.inside.items():
            shift = self._shifts[program + 1]
            yield program, min(inside) + shift, max(inside) + shift

    def enter(self) -> None:
        """Enter the claims about the later nodes, which must be the same operators on images of the same values."""
        ledger, images, where = self._ledger, self._images, self._where
        for program, nodes in self._stretch.nodes.items():
            shift, places = self._shifts[program + 1], ledger.places[program + 1]
            for position, value, reads_others in nodes:
                # Where all that a node reads is as far away, and repeated as well, it need not be looked at.
                if reads_others or places[position] != places[position + shift]:
                    self._check(program, position, position + shift)
                ledger.enter(program, position + shift, (images, value), where)

    def _check_terms(self) -> None:
        """The lemmas hold for all terms in the place of those that they do not look into; the others must be alike."""
        theory, images, used = self._ledger.theory, self._images.terms, self._stretch.used
        definitions = theory.definitions
        for term in (*images, *images.values()):
            if not 0 <= term < len(definitions):
                raise Refused(f"{self._where} names term {term}, which the certificate does not have")
        for term in used.unfolded:
            mine, other = definitions[term], definitions[images.get(term, term)]
            if mine is not other and (mine.content, mine.rank) != (other.content, other.rank):
                raise Refused(f"{self._where}: term {images[term]} is defined otherwise than term {term}")
            if other.operands != tuple([images.get(operand, operand) for operand in mine.operands]):
                found = images.get(term, term)
                raise Refused(f"{self._where}: term {found} reads other terms than those for term {term}")
        for term in used.named:
            image = images.get(term, term)
            if image == term:
                continue
            # A lemma is about all tensors of the rank of the term.
            alike = definitions[term].rank == definitions[image].rank
            alike = alike and (not theory.is_integer(term) or theory.is_integer(image))
            if not alike or theory.facts.get(term) != theory.facts.get(image):
                raise Refused(f"{self._where}: less is known of term {image} than of term {term}")
            if theory.holes[image] and not theory.holes[term]:
                raise Refused(f"{self._where}: term {image} needs a range that term {term} does not need")

    def _check(self, program: int, position: int, later: int) -> None:
        """A later node is the same operator, on values that are the images of those of the earlier node."""
        graph, ledger = self._ledger.graphs[program + 1], self._ledger
        mine, other, kinds = graph.nodes[position], graph.nodes[later], ledger.kinds[program + 1]
        same = kinds[position] == kinds[later] and len(mine.operands) == len(other.operands)
        if not same or isinstance(mine.op, ops.Message):
            raise Refused(f"{self._where}: {other.op.name} at %{later} does not repeat {mine.op.name} at %{position}")
        shift = self._shifts[program + 1]
        for a, b in zip(mine.operands, other.operands, strict=True):
            if b == a + shift and a in self._stretch.inside[program]:
                continue
            before, now = ledger.claim(program, a, self._where), ledger.claim(program, b, self._where)
            if kinds[a][1] != kinds[b][1] or ledger.image(self._images, before) != now:
                raise Refused(f"{self._where}: operand %{b} of %{later} is not the image of %{a}")


def _positions(equation: Equation) -> Sequence[tuple[int, int, int]]:
    if isinstance(equation, NodeEquation):
        return ((equation.program, equation.position, equation.value),)
    return equation.members if isinstance(equation, Meeting) else ()
