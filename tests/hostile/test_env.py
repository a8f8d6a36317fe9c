"""Claims about HLO that a hostile user made, and what the environment says of them; each test says what it said."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from bench.forged_env import forge
from rewright.env import Session, dry_run
from rewright.env.certificate import audit, certify, load, save
from rewright.env.compat import HloEnv
from rewright.env.compat.pipelines import GeneralFusionPipeline
from rewright.env.custom import Rewrite
from rewright.env.episode import Episode, Settings
from rewright.env.evidence import Evidence, evidence_for
from rewright.env.testing import compare_modules
from rewright.env.values import KnownValues
from rewright.env.values import Test as Shown
from rewright.ir.errors import RewrightError

pytest.importorskip("jax")


@pytest.fixture(scope="module")
def xla() -> Iterator[Session]:
    with Session() as session:
        yield session


def _becomes(xla: Session, name: str, after: str) -> Rewrite:
    """A rewrite of any program into that of a text."""
    target = xla.canonical(xla.parse(after)).program
    return Rewrite(name, lambda _: target)


def _said(xla: Session, before: str, after: str, tested: bool = True) -> list[Evidence]:
    """The evidence of every site in which one text becomes another."""
    run = dry_run(xla, xla.parse(before), [], tested=tested, patterns=[_becomes(xla, f"{before}{after}", after)])
    return [evidence_for(run.graph, n, run.tests[n] if tested else None, 3) for n in range(len(run))]


# --- numbers of devices


@pytest.mark.parametrize("operator", ["partition-id", "replica-id"])
@pytest.mark.parametrize("tested", [True, False])
def test_the_number_of_a_device_is_not_zero(xla: Session, operator: str, tested: bool) -> None:
    """It was proved, bit for bit, and device 3 of four has 3."""
    header = "HloModule m, num_partitions=4, replica_count=1\nENTRY main {\n ROOT r = u32[] "
    said = _said(xla, f"{header}{operator}()\n}}", f"{header}constant(0)\n}}", tested)
    assert [own.status for own in said] == ["unknown"]


def test_no_certificate_says_that_the_number_of_a_device_is_zero(xla: Session) -> None:
    """The certificate was complete, audited, and of the grade ``move``."""
    text = "HloModule m, num_partitions=4\nENTRY main {\n x = f32[4] parameter(0)\n ROOT r = u32[] %s\n}"
    zero = _becomes(xla, "zero", text % "constant(0)")
    episode = Episode(xla, xla.parse(text % "partition-id()"), Settings((), patterns=(zero,)))
    assert episode.choose(0)
    assert len(audit(certify(episode).document).open) == 1


@pytest.mark.parametrize("where", ["while", "conditional", "call"])
def test_the_number_of_a_device_inside_of_a_computation_is_not_zero(xla: Session, where: str) -> None:
    text = """HloModule m, num_partitions=4
    zero { n = u32[] parameter(0)
      z = u32[] %s
      ROOT r = u32[] add(n, z) }
    again { n = u32[] parameter(0)
      two = u32[] constant(2)
      ROOT r = pred[] compare(n, two), direction=LT }
    ENTRY main { n = u32[] parameter(0)
      p = pred[] parameter(1)
      ROOT r = u32[] %s }"""
    calls = {
        "while": "while(n), condition=again, body=zero",
        "conditional": "conditional(p, n, n), true_computation=zero, false_computation=zero",
        "call": "call(n), to_apply=zero",
    }
    said = _said(xla, text % ("partition-id()", calls[where]), text % ("constant(0)", calls[where]), tested=False)
    assert not all(own.status == "proved" for own in said)


# --- names of regions, hashes, fusions


_REGIONS = """HloModule m
add_f { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
ENTRY main {
  x = f32[4,6] parameter(0)
  i = f32[] parameter(1)
"""


def test_a_rewrite_of_one_reduction_into_two_is_offered_and_applies(xla: Session) -> None:
    """The alternatives were ``parameter of a region = parameter of a region``, of which XLA takes none."""
    one = _REGIONS + " ROOT v = f32[] reduce(x, i), dimensions={0,1}, to_apply=add_f\n}"
    two = _REGIONS + " t = f32[4] reduce(x, i), dimensions={1}, to_apply=add_f\n"
    two += " ROOT v = f32[] reduce(t, i), dimensions={0}, to_apply=add_f\n}"
    run = dry_run(xla, xla.parse(one), [], tested=False, patterns=[_becomes(xla, "nested", two)])
    assert len(run) == 1
    inputs = [np.arange(24, dtype=np.float32).reshape(4, 6), np.ones((), np.float32)]
    assert xla.execute(run.apply([0]), inputs) == xla.execute(xla.parse(two), inputs) == [276 + 5]
    said = evidence_for(run.graph, 0, None, 3)
    # The start is added once on the left, and five times on the right.
    assert said.status == "unknown"
    assert "5*v1[]" in said.text


def test_regions_that_changed_their_names_are_the_same(xla: Session) -> None:
    """XLA numbers regions anew, so that a rewrite that only adds one gave another one its name."""
    body = _REGIONS.replace(
        "ENTRY", "max_f { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] maximum(a, b) }\nENTRY"
    )
    before = body + " v = f32[4] reduce(x, i), dimensions={1}, to_apply=add_f\n ROOT w = f32[4] negate(v)\n}"
    after = body + " m = f32[4] reduce(x, i), dimensions={1}, to_apply=max_f\n"
    after += " v = f32[4] reduce(x, i), dimensions={1}, to_apply=add_f\n ROOT w = f32[4] subtract(m, v)\n}"
    run = dry_run(xla, xla.parse(before), [], tested=False, patterns=[_becomes(xla, "more", after)])
    assert {a.computation for a in run.graph.alternatives} == {run.graph.program.entry}
    inputs = [np.arange(24, dtype=np.float32).reshape(4, 6), np.ones((), np.float32)]
    found = xla.execute(run.apply(range(len(run))), inputs)[0]
    np.testing.assert_array_equal(found, xla.execute(xla.parse(after), inputs)[0])


def test_hashes_of_a_module_and_of_its_environment_are_equal(xla: Session) -> None:
    """HloEnv compares them; here the one was a number and the other a text."""
    env = HloEnv(
        "HloModule m\nENTRY main {\n x = f32[4] parameter(0)\n ROOT y = f32[4] negate(x)\n}", "txt", "cpu", xla
    )
    assert env.clone_hlo().hash() == env.get_hlo_module_hash()


SAFE_MASK = """HloModule m
ENTRY main {
  p = pred[3,3]{1,0} parameter(0)
  x = f32[3,3]{1,0} parameter(1)
  zero = f32[] constant(0)
  zeros = f32[3,3]{1,0} broadcast(zero), dimensions={}
  safe = f32[3,3]{1,0} select(p, x, zeros)
  root = f32[3,3]{1,0} sqrt(safe)
  ROOT out = f32[3,3]{1,0} select(p, root, zeros)
}"""


def test_general_fusion_with_the_first_choice_everywhere_can_be_evaluated(xla: Session) -> None:
    """XLA ended its process: ``Check failed: has_layout()``, on two of the three modules of HloEnv's own example."""
    env = HloEnv(SAFE_MASK, "txt", "cpu", xla)
    pipeline = GeneralFusionPipeline(env)
    env.run(pipeline.pre_pass_optimizations)
    before = env.get_hlo_module()
    for _ in range(20):
        env.run(pipeline.pre_dry_pass_passes)
        env.run(pipeline.pass_dry_run)
        graph = env.get_hlo_graph(do_hash_verification=False)
        if not len(graph.alternative_indices):
            break
        first = np.asarray([[graph.node_features.uids[a], 1] for a in graph.alternative_indices])
        env.apply_alternatives(first)
        env.run(pipeline.post_dry_pass_passes)
    env.run(pipeline.post_pass_optimizations)
    assert min(env.evaluate(3).durations) > 0
    assert env.has_equal_output_as(before)


# --- what decides a comparison


_HEAD = "HloModule m\nENTRY main {\n x = f32[4] parameter(0)\n y = f32[4] parameter(1)\n"
_ZERO = " k = f32[] constant(0)\n K = f32[4] broadcast(k), dimensions={}\n"
_INFINITY = " k = f32[] constant(inf)\n K = f32[4] broadcast(k), dimensions={}\n"
_TRUE = _HEAD + " k = pred[] constant(true)\n ROOT v = pred[4] broadcast(k), dimensions={}\n}"
DECIDED: dict[str, tuple[str, str, set[str]]] = {
    "exp(x) > 0": (
        f"{_HEAD}{_ZERO} e = f32[4] exponential(x)\n ROOT v = pred[4] compare(e, K), direction=GT\n}}",
        _TRUE,
        {"refuted"},
    ),
    "x * x >= 0": (
        f"{_HEAD}{_ZERO} e = f32[4] multiply(x, x)\n ROOT v = pred[4] compare(e, K), direction=GE\n}}",
        _TRUE,
        {"refuted"},
    ),
    "max(x, 0) >= 0": (
        f"{_HEAD}{_ZERO} e = f32[4] maximum(x, K)\n ROOT v = pred[4] compare(e, K), direction=GE\n}}",
        _TRUE,
        {"refuted"},
    ),
    "x + y - y >= x": (
        f"{_HEAD} a = f32[4] add(x, y)\n b = f32[4] subtract(a, y)\n ROOT v = pred[4] compare(b, x), direction=GE\n}}",
        _TRUE,
        {"refuted"},
    ),
    # At x = -inf the left side is no number: there nothing is claimed, and elsewhere both are infinite.
    "x + inf = inf": (
        f"{_HEAD}{_INFINITY} ROOT v = f32[4] add(x, K)\n}}",
        f"{_HEAD} k = f32[] constant(inf)\n ROOT v = f32[4] broadcast(k), dimensions={{}}\n}}",
        {"unknown"},
    ),
    "bf16(x) == bf16(y)": (
        f"{_HEAD} a = bf16[4] convert(x)\n b = bf16[4] convert(y)\n ROOT v = pred[4] compare(a, b), direction=EQ\n}}",
        f"{_HEAD} ROOT v = pred[4] compare(x, y), direction=EQ\n}}",
        {"refuted"},
    ),
    "places in bf16": (
        f"{_HEAD} i = bf16[1000] iota(), iota_dimension=0\n j = f32[1000] convert(i)\n"
        " k = f32[1000] iota(), iota_dimension=0\n ROOT v = pred[1000] compare(j, k), direction=EQ\n}",
        f"{_HEAD} k = pred[] constant(true)\n ROOT v = pred[1000] broadcast(k), dimensions={{}}\n}}",
        # XLA on a CPU keeps more digits than are written, and says that they are equal.
        {"tested", "refuted"},
    ),
    "reduce-precision": (
        f"{_HEAD} a = f32[4] reduce-precision(x), exponent_bits=5, mantissa_bits=3\n ROOT v = f32[4] negate(a)\n}}",
        f"{_HEAD} ROOT v = f32[4] negate(x)\n}}",
        {"refuted"},
    ),
    "relu by a choice": (
        f"{_HEAD}{_ZERO} p = pred[4] compare(x, K), direction=GT\n ROOT v = f32[4] select(p, x, K)\n}}",
        f"{_HEAD}{_ZERO} ROOT v = f32[4] maximum(x, K)\n}}",
        {"refuted"},
    ),
}


@pytest.mark.parametrize(("before", "after", "known"), DECIDED.values(), ids=DECIDED.keys())
def test_what_rounding_or_infinity_decides_is_not_proved(
    xla: Session, before: str, after: str, known: set[str]
) -> None:
    """All were proved over the reals, and no test drew a number at which they part."""
    assert "proved" not in {own.status for own in _said(xla, before, after, tested=False)}
    assert {own.status for own in _said(xla, before, after)} & known
    assert "proved" not in {own.status for own in _said(xla, before, after)}


CONSTANTS = {
    "257 in bf16": ("f32", "257", "a = bf16[4] convert(C)\n b = f32[4] convert(a)", "257", "true"),
    "2^24 + 1 in f32": ("s32", "16777217", "b = f32[4] convert(C)", "16777216", "false"),
    "1e5 in f16": ("f32", "1e5", "a = f16[4] convert(C)\n b = f32[4] convert(a)", "1e5", "true"),
}


@pytest.mark.parametrize(("kind", "value", "cast", "other", "said"), CONSTANTS.values(), ids=CONSTANTS.keys())
def test_a_constant_has_the_digits_of_its_type(
    xla: Session, kind: str, value: str, cast: str, other: str, said: str
) -> None:
    """Casts of constants were computed with all digits, and then compared: both sides were constants."""
    before = f"{_HEAD} c = {kind}[] constant({value})\n C = {kind}[4] broadcast(c), dimensions={{}}\n {cast}\n"
    before += f" d = f32[] constant({other})\n D = f32[4] broadcast(d), dimensions={{}}\n"
    before += " ROOT v = pred[4] compare(b, D), direction=EQ\n}"
    after = f"{_HEAD} k = pred[] constant({said})\n ROOT v = pred[4] broadcast(k), dimensions={{}}\n}}"
    assert "proved" not in {own.status for own in _said(xla, before, after, tested=False)}
    assert "proved" not in {own.status for own in _said(xla, before, after)}


_BELOW = {
    "a constant": " low = f32[4] broadcast(i), dimensions={}",
    "a reduction": " c = f32[2,4] broadcast(i), dimensions={}\n"
    " low = f32[4] reduce(c, i), dimensions={0}, to_apply=max_f",
    "a slice": " c = f32[8] broadcast(i), dimensions={}\n n = s32[] parameter(1)\n"
    " low = f32[4] dynamic-slice(c, n), dynamic_slice_sizes={4}",
}


@pytest.mark.parametrize("low", _BELOW.values(), ids=_BELOW.keys())
def test_nothing_is_known_to_differ_from_infinity(xla: Session, low: str) -> None:
    """A private list of operators said what may be infinite, and had no reduction: ``x == low`` was proved false."""
    head = "HloModule m\nmax_f { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT m = f32[] maximum(a, b) }\n"
    head += "ENTRY e { x = f32[4] parameter(0)\n i = f32[] constant(-inf)\n"
    before = f"{head}{low}\n ROOT r = pred[4] compare(x, low), direction=EQ }}"
    after = f"{head}{low}\n f = pred[] constant(false)\n ROOT r = pred[4] broadcast(f), dimensions={{}} }}"
    assert [own.status for own in _said(xla, before, after)] == ["refuted"]
    assert [own.status for own in _said(xla, before, after, tested=False)] == ["unknown"]


# --- what tests draw, and what they allow


_BESIDE = """HloModule m
ENTRY main {
 x = f32[8] parameter(0)
 k = f32[] constant(1e8)
 K = f32[8] broadcast(k), dimensions={}
 c = f32[] constant(%s)
 C = f32[8] broadcast(c), dimensions={}
 a = f32[8] multiply(x, K)
 b = f32[8] add(x, C)
 ROOT v = f32[16] concatenate(a, b), dimensions={0}
}"""


@pytest.mark.parametrize("large", ["1e8", "1e20", "1e30"])
def test_a_large_element_excuses_no_small_one(xla: Session, large: str) -> None:
    """The largest element said what is allowed: a difference of 7 was less than the 5,750 that 1e8 x gave."""
    one, eight = (xla.parse((_BESIDE % value).replace("1e8", large)) for value in ("1", "8"))
    assert compare_modules(xla, one, eight).agrees is False
    assert compare_modules(xla, one, one).agrees
    assert not HloEnv(one, session=xla).has_equal_output_as(eight)


_SOFTMAX = """HloModule m
add_f { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT r = f32[] add(a, b) }
max_f { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT r = f32[] maximum(a, b) }
ENTRY main {
 x = f32[4,6] parameter(0)
 z = f32[] constant(0)
 n = f32[] constant(-inf)
 m = f32[4] reduce(x, n), dimensions={1}, to_apply=max_f
 M = f32[4,6] broadcast(m), dimensions={0}
 d = f32[4,6] subtract(x, M)
 e = f32[4,6] exponential(%s)
 s = f32[4] reduce(e, z), dimensions={1}, to_apply=add_f
 S = f32[4,6] broadcast(s), dimensions={0}
 ROOT v = f32[4,6] divide(e, S)
}"""


def test_a_softmax_without_its_maximum_is_another_one(xla: Session) -> None:
    """It agreed: no number beyond 20 was drawn. At 100 it is no number."""
    stable, naive = (xla.parse(_SOFTMAX % exponent) for exponent in ("d", "x"))
    said = compare_modules(xla, stable, naive)
    assert said.agrees is False
    assert "difference inf" in said.what
    assert compare_modules(xla, naive, naive).agrees


REAL = {
    "sums in another order": (" a = f32[4] add(x, y)\n ROOT v = f32[4] add(a, x)", " ROOT v = f32[4] add(x, a)"),
    "a common factor": (
        " a = f32[4] multiply(x, y)\n b = f32[4] multiply(x, x)\n ROOT v = f32[4] add(a, b)",
        " a = f32[4] add(x, y)\n ROOT v = f32[4] multiply(x, a)",
    ),
    "a quotient of quotients": (
        " a = f32[4] divide(x, y)\n ROOT v = f32[4] divide(a, y)",
        " a = f32[4] divide(x, y)\n b = f32[4] divide(a, y)\n ROOT v = f32[4] copy(b)",
    ),
    "a hyperbolic tangent": (
        " ROOT v = f32[4] tanh(x)",
        " t = f32[] constant(2)\n T = f32[4] broadcast(t), dimensions={}\n a = f32[4] multiply(T, x)\n"
        " s = f32[4] logistic(a)\n b = f32[4] multiply(T, s)\n o = f32[] constant(1)\n"
        " O = f32[4] broadcast(o), dimensions={}\n ROOT v = f32[4] subtract(b, O)",
    ),
}


@pytest.mark.parametrize(("before", "after"), REAL.values(), ids=REAL.keys())
def test_rounding_is_no_difference(xla: Session, before: str, after: str) -> None:
    shared = " a = f32[4] add(x, y)\n" if "(x, a)" in after and "a =" not in after else ""
    one, other = xla.parse(f"{_HEAD}{before}\n}}"), xla.parse(f"{_HEAD}{shared}{after}\n}}")
    assert compare_modules(xla, one, other).agrees


def test_a_difference_that_only_float64_would_not_show_is_found(xla: Session) -> None:
    """What is lost by cancellation with a large constant is no rounding of the result."""
    lost = f"{_HEAD} k = f32[] constant(1e8)\n K = f32[4] broadcast(k), dimensions={{}}\n"
    lost += " a = f32[4] add(x, K)\n ROOT v = f32[4] subtract(a, K)\n}"
    assert compare_modules(xla, xla.parse(f"{_HEAD} ROOT v = f32[4] copy(x)\n}}"), xla.parse(lost)).agrees is False


# --- a table of claims


@dataclass(frozen=True)
class Claim:
    """``before = after``; what it is in truth: F, R or T."""

    name: str
    truth: str
    regions: str
    given: tuple[str, ...]
    shape: str
    before: tuple[str, ...]
    after: tuple[str, ...]

    def text(self, side: tuple[str, ...]) -> str:
        """One side as a module."""
        lines = "\n ".join((*self.given, *side))
        return f"HloModule m\n{self.regions}\nENTRY main {{\n {lines}\n ROOT out = ({self.shape}) tuple(v)\n}}\n"


def _claims() -> list[Claim]:
    """The claims of the table."""
    text = (Path(__file__).parent / "env_claims.txt").read_text()
    found: list[Claim] = []
    for block in text.split("\n\n"):
        rows = [line.partition(" ") for line in block.splitlines() if not line.startswith("//")]
        if not rows:
            continue
        (_, _, title), *lines = rows
        truth, _, name = title.partition(" ")
        own = {kind: tuple(line for key, _, line in lines if key == kind) for kind in ("given", "before", "after")}
        regions = "\n".join(line for key, _, line in lines if key == "region")
        shape = next(line for key, _, line in lines if key == "shape")
        found.append(Claim(name, truth, regions, own["given"], shape, own["before"], own["after"]))
    return found


CLAIMS = _claims()
_FIRST = [claim for claim in CLAIMS[::3] if not claim.name.startswith("while")]
_SURE = ("same", "move")


def _graded(xla: Session, claim: Claim) -> list[str]:
    """The grades of all sites and of XLA's import, empty for what is not proved; nothing where XLA refuses a side."""
    try:
        becomes = _becomes(xla, claim.name, claim.text(claim.after))
        episode = Episode(xla, xla.parse(claim.text(claim.before)), Settings((), tested=False, patterns=(becomes,)))
    except RewrightError:
        return []
    grades = [evidence_for(episode.run.graph, n, None, 3).grade for n in range(len(episode.run))]
    if not grades or not all(grades):
        return grades
    own = certify(episode)
    return [*grades, own.grade if own.proved else ""]


def _check(xla: Session, claim: Claim) -> None:
    grades = _graded(xla, claim)
    is_proved = bool(grades) and all(grades)
    assert not (is_proved and claim.truth == "F"), f"{claim.name} is false, and proved: {grades}"
    is_sure = is_proved and all(grade in _SURE for grade in grades)
    assert not (is_sure and claim.truth == "R"), f"{claim.name} holds over the reals alone: {grades}"


@pytest.mark.parametrize("claim", _FIRST, ids=lambda claim: claim.name)
def test_no_false_claim_is_proved(xla: Session, claim: Claim) -> None:
    """Fourteen of them were: comparisons, sums with infinity, numbers of devices, regions, fewer digits, places."""
    _check(xla, claim)


@pytest.mark.slow
@pytest.mark.parametrize("claim", [claim for claim in CLAIMS if claim not in _FIRST], ids=lambda claim: claim.name)
def test_no_false_claim_of_the_rest_is_proved(xla: Session, claim: Claim) -> None:
    _check(xla, claim)


# --- certificates


def test_no_forged_certificate_is_accepted(xla: Session) -> None:
    found = forge(xla, 120, seed=1)
    assert found.count == 132
    assert not found.wrong
    assert sum(own["refused"] for own in found.kinds.values()) > 60


@pytest.mark.slow
def test_none_of_a_thousand_forged_certificates_is_accepted(xla: Session) -> None:
    assert not forge(xla, 1000, seed=2).wrong


def test_a_certificate_is_read_in_one_way_only(xla: Session, tmp_path: Path) -> None:
    """Of a key that occurs twice one reader takes the first, and another the last."""
    episode = Episode(xla, xla.parse(SAFE_MASK), Settings(("general-fusion",), tested=False))
    assert episode.choose(0)
    own, path = certify(episode), tmp_path / "certificate.json"
    save(own, str(path))
    text = path.read_text()
    assert audit(load(path)) == audit(own.document)
    for wrong in (text.replace("{", '{"open": [], ', 1), text.replace(": ", ":", 1), text + " {}", "[1, NaN]"):
        path.write_text(wrong)
        with pytest.raises(RewrightError):
            audit(load(path))


def test_what_agrees_but_for_rounding_is_not_one_value() -> None:
    """It had one number from then on, so that a comparison of the one agreed with that of the other without a run."""
    known = KnownValues()
    known.record(b"a", b"b", Shown(True, "rounding"))
    known.record(b"c", b"d", Shown(True, "to the bit", is_exact=True))
    assert known.find(b"a") != known.find(b"b")
    assert known.find(b"c") == known.find(b"d")
    assert known.lookup(b"a", b"b") == Shown(True, "rounding")
