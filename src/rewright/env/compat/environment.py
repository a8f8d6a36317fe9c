"""HloEnv's passes, pipelines and environment.

Passes run on XLA:CPU. ``AltPipeline`` runs its passes dry: what they would do becomes alternatives, which
``apply_alternatives`` chooses from.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from rewright.env.alternatives import AlternativeGraph
from rewright.env.compat.config import HloModuleConfig, module_config
from rewright.env.compat.features import Array, HloGraph
from rewright.env.compat.module import HloModule, loaded
from rewright.env.dryrun import DryRun, dry_run
from rewright.env.features import graph_features
from rewright.env.inputs import draw_inputs
from rewright.env.module import HloModule as Module
from rewright.env.passes import MOST_LOOPS, XlaPass
from rewright.env.proposers import FUSION
from rewright.env.session import Session
from rewright.env.testing import compare_modules
from rewright.env.xla.names import CPU_PASSES
from rewright.frontends.hlo.order import Cycle
from rewright.ir.errors import RewrightError

PASS_NAMES = {
    "AlgebraicSimplifier": "algsimp", "AllToAllDecomposer": "all_to_all_decomposer",
    "BatchNormExpander": "batchnorm_expander", "BFloat16Normalization": "float-normalization-bf16",
    "BitcastDtypesExpander": "bitcast_dtypes_expander", "CallInliner": "call-inliner",
    "ComparisonExpander": "comparison-expander", "ConditionalCanonicalizer": "conditional-canonicalizer",
    "ConditionalSimplifier": "simplify-conditional", "DotDecomposer": "dot_decomposer",
    "DynamicDimensionSimplifier": "dynamic-dimension-simplifier", "DynamicIndexSplitter": "dynamic-index-splitter",
    "DynamicPadder": "dynamic_padder", "EighExpander": "eigh_expander", "FlattenCallGraph": "flatten-call-graph",
    "GatherExpander": "gather_expander", "HloConstantFolding": "constant_folding", "HloCSE": "cse", "HloDCE": "dce",
    "LogisticExpander": "logistic-expander", "OperandUpcaster": "operand_upcaster", "QrExpander": "qr_expander",
    "ReshapeMover": "reshape-mover", "ResultCaster": "result_caster",
    "RngBitGeneratorExpander": "rng-bit-generator-expander", "RngExpander": "rng-expander",
    "ScatterExpander": "scatter_expander", "ShardingRemover": "sharding-remover", "SortSimplifier": "simplify-sorts",
    "TransposeFolding": "transpose-folding", "TupleSimplifier": "tuple-simplifier",
    "WhileLoopConstantSinking": "while-loop-constant-sinking", "WhileLoopSimplifier": "simplify-while-loops",
    "WhileLoopTripCountAnnotator": "while-loop-trip-count-annotator",
    "ZeroSizedHloElimination": "zero_sized_hlo_elimination", "AllReduceCombiner": "cpu-all-reduce-combiner",
    "GpuInstructionFusion": "fusion", "GpuTreeReductionRewriter": "tree_reduction_rewriter",
}  # fmt: skip
"""Pass classes of HloEnv that XLA:CPU has, with XLA's names for them."""


class _PassTable:
    """``HloPass.X(...)``: the options of HloEnv's constructors are taken and have no effect."""

    def __getattr__(self, name: str) -> Any:
        known = {**PASS_NAMES, "GeneralFusion": FUSION}
        if name not in known:
            raise RewrightError(
                f"XLA:CPU has no pass for HloEnv's {name}; rewright.env.xla.names.CPU_PASSES lists those it has"
            )

        def construct(*_: object, **__: object) -> XlaPass:
            return XlaPass(known[name], CPU_PASSES | {FUSION})

        return construct


HloPass = hlo_pass = _PassTable()


class _Runs:
    """What can be run on a module by itself."""

    def Run(self, module: HloModule) -> bool:
        """Run on a module, which changes in its place; whether it did. Alternatives are left as they were."""
        env = HloEnv(module)
        before = module.hash()
        while env.run(cast("Pass | Pipeline | AltPipeline", self)):
            env.apply_alternatives([])
        module.take(env.get_hlo_module())
        return module.hash() != before


@dataclass
class Pass(_Runs):
    """One pass, some times over; -1 is to a fixpoint, 25 times at most."""

    hlo_pass: XlaPass
    loop_count: int = 1
    changed: bool = False

    @property
    def name(self) -> str:
        """XLA's name of the pass."""
        return self.hlo_pass.name


@dataclass
class Pipeline(_Runs):
    """Passes and pipelines in order, some times over."""

    name: str
    loop_count: int = 1
    entries: list[Pass | Pipeline | AltPipeline] = field(default_factory=list["Pass | Pipeline | AltPipeline"])
    changed: bool = False

    def add_pass(self, entry: XlaPass | Pass | Pipeline | AltPipeline, loop_count: int = 1) -> None:
        """Add a pass or a pipeline at the end, ``loop_count`` times over."""
        if isinstance(entry, XlaPass):
            self.entries.append(Pass(entry, loop_count))
        else:
            self.entries.append(entry if loop_count == 1 else Pipeline(entry.name, loop_count, [entry]))

    def add_invariant_checker(self, entry: XlaPass | Pass) -> None:
        """Taken and not run: XLA verifies every module that it imports."""


@dataclass
class AltPipeline(_Runs):
    """A pass or a pipeline whose passes all run dry."""

    entry: XlaPass | Pass | Pipeline
    loop_count: int = 1
    changed: bool = False

    @property
    def name(self) -> str:
        """The name of what runs dry."""
        return self.entry.name

    def names(self) -> list[str]:
        """XLA's names of all passes in it."""
        found: list[str] = []
        stack: list[Any] = [self.entry]
        while stack:
            entry = stack.pop()
            if isinstance(entry, (Pass, XlaPass)):
                found.append(entry.name)
            elif isinstance(entry, Pipeline):
                stack.extend(reversed(entry.entries))
            else:
                stack.append(entry.entry)
        return found


@dataclass(frozen=True)
class EvaluationResult:
    """Run times in nanoseconds, and the outputs of the last run."""

    durations: list[float]
    compute_durations: list[float]
    full_durations: list[float]
    output: list[Array]


class HloEnv:
    """HloEnv's environment: run passes, choose among what a dry run found, evaluate."""

    def __init__(
        self,
        source: str | Module,
        format: str = "path",
        platform: str = "cpu",
        session: Session | None = None,
    ) -> None:
        if format in ("cpu", "gpu", "interpreter"):
            # As in HloEnv, the platform may come second.
            format, platform = "path", format
        if platform != "cpu":
            raise RewrightError(f"the platform {platform!r:.40} is not there; modules run on 'cpu'")
        own = source.session if isinstance(source, HloModule) else None
        self.session: Session = session or own or Session()
        found = source if isinstance(source, Module) else loaded(self.session, source, format)
        # HloEnv's own passes change a module in its place: what is kept is a copy.
        self._module: Module = HloModule(found, session=self.session)
        self._dry: DryRun | None = None
        self._suspended: dict[int, tuple[object, Generator[None, None, bool]]] = {}
        """What stopped at alternatives, by its identity, and how it goes on; kept, so that the identity is its own."""

    # --- modules

    def get_hlo_module(self) -> HloModule:
        """The module as it is, without the alternatives of a dry run."""
        return HloModule(self._module, session=self.session)

    def clone_hlo(self) -> HloModule:
        """The state, to be loaded again."""
        return self.get_hlo_module()

    def load_hlo(self, source: str | Module, format: str = "path") -> None:
        """Continue from a module, a file or a text."""
        own = source if isinstance(source, Module) else loaded(self.session, source, format)
        self._module, self._dry, self._suspended = HloModule(own, session=self.session), None, {}

    def export_hlo_to_str(self) -> str:
        """The module as HLO text."""
        return self.session.text(self._module)

    save_hlo = clone_hlo

    @property
    def config(self) -> HloModuleConfig:
        """How modules are compiled; HloEnv has this at the module."""
        return module_config(self.session)

    def get_hlo_module_hash(self) -> int:
        """The number that ``hash`` of the module gives: of all but names."""
        return self.get_hlo_module().hash()

    def get_hlo_graph(
        self, debug: bool = False, inline_fused_comp: bool = False, do_hash_verification: bool = False
    ) -> HloGraph:
        """The features of the module, with the alternatives of a dry run."""
        graph = self._dry.graph if self._dry is not None else AlternativeGraph(self._module.program)
        return HloGraph(graph_features(graph))

    # --- passes

    def run(self, what: Pass | Pipeline | AltPipeline) -> bool:
        """Run; True where a dry run found alternatives: apply some, and run the same object to go on from there."""
        known = self._suspended.pop(id(what), None)
        steps = known[1] if known is not None else self._steps(what)
        for _ in steps:
            self._suspended[id(what)] = (what, steps)
            return True
        return False

    def _steps(self, what: Pass | Pipeline | AltPipeline) -> Generator[None, None, bool]:
        """Run, and stop at every dry run that finds alternatives; whether anything changed, or could be."""
        what.changed = False
        for _ in range(MOST_LOOPS if what.loop_count < 0 else what.loop_count):
            if isinstance(what, Pass):
                own = self._run_pass(what)
            elif isinstance(what, AltPipeline):
                run = dry_run(self.session, self._module, what.names())
                own = any(run.offered)
                if own:
                    self._dry, self._module = run, run.module
                    what.changed = True
                    yield
            else:
                own = False
                for entry in what.entries:
                    own = (yield from self._steps(entry)) or own
            what.changed = what.changed or own
            if not own:
                break
        return what.changed

    def _run_pass(self, entry: Pass) -> bool:
        if entry.name == FUSION:
            raise RewrightError("GeneralFusion offers pairs and decides for none; run it in an AltPipeline")
        self._module, changed = self.session.run(self._module, entry.hlo_pass)
        return changed

    def apply_alternatives(self, decisions: Array | Sequence[Sequence[int]]) -> None:
        """Choose: rows of (node of alternatives, choice), by index or uid; choice 0 keeps what is there.

        A choice that would close a cycle, or that testing refuted, is left out. Raises RewrightError for a node that
        is none of alternatives, and without a dry run.
        """
        if self._dry is None:
            raise RewrightError("no alternatives are there; run an AltPipeline first")
        slots = self._dry.graph.slots
        nodes = {int(node): slot for node, slot in zip(self.get_hlo_graph().alternative_indices, slots, strict=True)}
        chosen: list[int] = []
        for node, choice in np.asarray(decisions, dtype=np.int64).reshape(-1, 2).tolist():
            if node not in nodes or not 0 <= choice <= len(nodes[node]):
                raise RewrightError(f"node {node} has no choice {choice}; see alternative_indices")
            if choice == 0 or not self._dry.offered[nodes[node][choice - 1]]:
                continue
            if self._dry.graph.applicable(chosen)[nodes[node][choice - 1]]:
                chosen.append(nodes[node][choice - 1])
        try:
            self._module = self._dry.apply(chosen)
        except Cycle as error:
            raise RewrightError(f"the choices cannot be made together: {error}") from None
        self._dry = None

    def optimize_hlo_module(self) -> None:
        """XLA's own optimisation of the whole module: the baseline."""
        self._module = self.session.optimised(self._module)

    def prepare_for_eval(self) -> None:
        """Nothing: modules are made fit for code generation where they are compiled."""

    # --- evaluation

    def evaluate(self, times: int = 20, do_not_prep_for_eval: bool = False) -> EvaluationResult:
        """Run the module as it is, ``times`` times after three more that are not counted."""
        started = time.perf_counter()
        inputs = draw_inputs(self._module)
        seconds = self.session.measure([(self._module, "exact")], inputs, times)[0]
        nanoseconds = [1e9 * own for own in seconds]
        output = self.session.execute(self._module, inputs)
        full = [1e9 * (time.perf_counter() - started) / max(times, 1)] * times
        return EvaluationResult(nanoseconds, nanoseconds, full, output)

    def has_equal_output(self, left: Module, right: Module, times: int = 1) -> bool:
        """Whether two modules give equal outputs on random inputs, at a tolerance that float64 scales.

        Raises RewrightError where running them says nothing: a module draws random numbers, or no output is finite.
        """
        for seed in range(max(times, 1)):
            found = compare_modules(self.session, left, right, seed)
            if found.agrees is None:
                raise RewrightError(f"outputs cannot be compared: {found.what}")
            if not found.agrees:
                return False
        return True

    def has_equal_output_as(self, other: Module, times: int = 1) -> bool:
        """Whether the module gives the outputs of another."""
        return self.has_equal_output(self._module, other, times)
