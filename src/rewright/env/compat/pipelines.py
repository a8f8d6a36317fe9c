"""HloEnv's pipelines around one dry run: what runs before the choices, between them and after, of what XLA:CPU has."""

from __future__ import annotations

from rewright.env.compat.environment import AltPipeline, HloEnv, HloPass, Pass, Pipeline

_EXPANDERS = (
    "EighExpander QrExpander RngExpander RngBitGeneratorExpander ComparisonExpander LogisticExpander BatchNormExpander "
    "GatherExpander ScatterExpander DynamicPadder OperandUpcaster ResultCaster DynamicIndexSplitter CallInliner"
)
_SIMPLIFIERS = (
    "ZeroSizedHloElimination AlgebraicSimplifier TupleSimplifier WhileLoopConstantSinking WhileLoopSimplifier "
    "ReshapeMover HloConstantFolding ConditionalSimplifier SortSimplifier TransposeFolding HloCSE HloDCE"
)


def _pipeline(name: str, passes: str, loop_count: int = 1) -> Pipeline:
    found = Pipeline(name, loop_count)
    for title in passes.split():
        found.add_pass(getattr(HloPass, title)())
    return found


class PassPipelines:
    """What an agent of HloEnv runs, by the names that it uses; :attr:`pass_dry_run` is what it chooses from."""

    dry = "GeneralFusion"

    def __init__(self, env: HloEnv) -> None:
        self.hlo_env = env
        self.pre_pass_optimizations = Pipeline("pre-pass optimizations")
        self.pre_pass_optimizations.add_pass(_pipeline("expansion", _EXPANDERS))
        self.pre_pass_optimizations.add_pass(_pipeline("simplification", _SIMPLIFIERS, -1))
        self.pre_dry_pass_passes = _pipeline("pre-dry passes", "")
        self.pass_dry_run = AltPipeline(Pass(getattr(HloPass, self.dry)()))
        self.post_dry_pass_passes = _pipeline("post-dry passes", "HloCSE HloDCE")
        self.post_pass_optimizations = _pipeline("post-pass optimizations", "TupleSimplifier HloDCE")


class GeneralFusionPipeline(PassPipelines):
    """Every legal pair is a choice."""


class SingleFusionPipeline(PassPipelines):
    """The fusions of XLA's own pass are the choices."""

    dry = "GpuInstructionFusion"
