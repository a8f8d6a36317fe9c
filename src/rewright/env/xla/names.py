"""Names of XLA's CPU passes, which of them legalise, and what each is for.

jaxlib has no call that lists its passes. The names are those that XLA:CPU of jaxlib 0.10 reports when it runs; a
compilation with dumps adds any that are missing (:func:`rewright.env.listing.passes`).
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

GPU_PASSES = words(
    """algorithm-checker algsimp all-gather-bcast-reorder all-gather-dynamic-slice-simplifier
    all-gather-major-dimension-rewriter all-gather-optimizer all-gather-pad-ds-simplifier
    all-gather-remove-degenerate-dims all-gather-to-collective-permute-simplifier all-reduce-contiguous
    all-reduce-folder all-reduce-promotion all-reduce-reassociate all-reduce-simplifier all-reduce-splitter
    associative-scan-rewriter async-collective-annotator async-collective-creator async-stream-attribute-wrapper
    async-to-sync-converter autotuner batched_gather_scatter_normalizer batchnorm_expander bitcast_dtypes_expander
    block-scaling-rewriter broadcast_canonicalizer call-inliner cholesky_expander collective-backend-assigner
    collective-kernel-strategy-annotator collective-permute-combiner collective-pipeliner-forward
    collective-pipelining-analyzer collective-quantizer collectives-schedule-linearizer comparison-expander
    composite-rewriter computation-deduplicator conditional-canonicalizer constant_folding
    conv-padding-legalization conv-rewriter convert-memory-placement-to-internal-annotations convert-mover
    convert_triton_gemm_config convolution-pred-expander convolution_4d_expander copy-insertion copy_fusion cse
    cse_barrier_expander cublas-gemm-broadcast-folding-rewriter cublas-gemm-rewriter cublas-pad-for-gemms
    cudnn-custom-call-converter cudnn-fused-convolution-rewriter cudnn_pad_for_convolutions cudnn_simplify_padding
    dce deviceless-estimate-cub-sort-scratch-size dot-algorithm-rewriter dot-merger dot-strength-reduction
    dot_decomposer dot_dimension_merger dot_dimension_sorter dot_normalizer dus-accumulator-zero-init-elimination
    dynamic-dimension-simplifier dynamic-index-splitter dynamic-slice-annotator dynamic_padder eigh_expander
    estimate-cub-scan-scratch-size explicit-collectives-group-async-wrapper
    explicit-stream-annotation-async-wrapper flatten-call-graph float-normalization-bf16
    float-normalization-f4e2m1fn float-normalization-f8e3m4 float-normalization-f8e4m3
    float-normalization-f8e4m3b11fnuz float-normalization-f8e4m3fn float-normalization-f8e4m3fnuz
    float-normalization-f8e5m2 float-normalization-f8e5m2fnuz float-normalization-f8e8m0fnu float-normalization-s4
    float-normalization-u4 fusion-block-level-rewriter fusion-dynamic-memcpy-rewriter fusion-wrapper
    gather_expander gather_simplifier gemm-fusion-swap-operands gemv-rewriter gpu-all-gather-combiner
    gpu-all-reduce-combiner gpu-convert-async-collectives-to-sync gpu-reduce-scatter-combiner gpu_scatter_expander
    hlo_host_device_type_call_wrapper hoist-fused-bitcasts host-memory-transfer-asyncifier host-offload-legalize
    host-offloader host-offloading-prepare-convert-to-custom-call host_compute_asyncifier layout-assignment
    layout_normalization legalize-scheduling-annotations logistic-expander loop-schedule-linearizer
    move_copy_to_users multi_output_fusion operand_converter operand_upcaster optimize_input_output_buffer_alias
    permutation_sort_simplifier priority-fusion propagate-call-metadata qr_expander
    ragged-all-to-all-canonicalizer ragged_dot_rewriter reduce-decomposer reduce-scatter-creator
    reduce-scatter-reassociate reduce-window-resizer reduce-window-rewriter reduction-degenerate-dim-remover
    reduction-dimension-grouper reduction-layout-normalizer reduction-splitter rematerialization
    rename-instructions rename_fusions reshape-decomposer reshape-mover result_caster rng-bit-generator-expander
    rng-expander sanitize-constant-names scan-rewriter scan_expander scatter-slice-simplifier scatter_expander
    scatter_simplifier scheduling-instruction-annotator select_and_scatter_expander sharding-remover
    simplify-conditional simplify-fp-conversions simplify-sorts simplify-while-loops slice-sinker sort-iota-fusion
    sort-rewriter splitk-rewriter stable-sort-expander stochastic_convert_decomposer stream-attribute-annotator
    sub-byte-collective-normalization sub-byte-size-setter topk-decomposer topk-rewriter topk-specializer
    topk-splitter transpose-folding tree-reduction-rewriter triangular-solve-rewriter triton-gemm-rewriter
    triton-softmax-rewriter tuple-simplifier variadic-op-splitter while-loop-all-reduce-code-motion
    while-loop-constant-sinking while-loop-trip-count-annotator windowed-einsum-handler zero_sized_hlo_elimination"""
)
"""Passes that XLA:GPU of jaxlib 0.10 reports when it compiles for CUDA, nested pipelines aside."""
