"""Names of XLA's CPU passes, which of them legalise, and what each is for.

jaxlib has no call that lists its passes. The names are those that XLA:CPU of jaxlib 0.10 reports when it runs; a
compilation with dumps adds any that are missing (:func:`rewright.env.passes.passes`).
"""

from __future__ import annotations

from rewright.env.words import words

LEGALISING = words(
    """flatten-call-graph sharding-remover control-dep-rewriter sub-byte-size-setter batched_gather_scatter_normalizer
    result_caster dot_decomposer operand_upcaster rng-expander rng-bit-generator-expander zero_sized_hlo_elimination
    dynamic-index-splitter map-inline topk-decomposer comparison-expander cholesky_expander qr_expander eigh_expander
    triangular_solve_expander all_to_all_decomposer stochastic_convert_decomposer all-reduce-promotion
    float-normalization-bf16 convolution-group-converter batchnorm_expander logistic-expander conditional-canonicalizer
    associative-scan-rewriter reduce-window-rewriter scan_expander dynamic_padder convolution-canonicalization
    change-op-data-type gather_expander select_and_scatter_expander scatter_expander bitcast_dtypes_expander
    layout-assignment copy-insertion optimize_input_output_buffer_alias cpu-parallel-task-assigner
    async-collective-replacer strip-memory-placement-annotations propagate-call-metadata call-inliner
    reduce-decomposer fusion-wrapper scatter_simplifier gather_simplifier
    reshape-decomposer dot-library-rewriter"""
)
"""Passes without which XLA:CPU cannot generate code, or not well: they choose among its libraries."""

OPTIMISING = words(
    """dce conditional-to-select batch-dot-simplification dynamic-dimension-simplifier reduce-window-resizer algsimp
    simplify-sorts tree_reduction_rewriter while-loop-invariant-code-motion tuple-simplifier
    while-loop-constant-sinking simplify-while-loops reshape-mover constant_folding simplify-conditional
    gemv-rewriter topk-rewriter transpose-folding cse cse_barrier_expander
    while-loop-trip-count-annotator shape-canonicalizer literal-canonicalizer
    broadcast_canonicalizer fusion cpu-all-reduce-combiner small-while-loop-hoisting"""
)
"""Passes that make a module cheaper, or canonical: what an agent may decide instead."""

CPU_PASSES = LEGALISING | OPTIMISING
