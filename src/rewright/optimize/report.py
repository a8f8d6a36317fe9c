"""The explanation of a plan, and its files."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rewright.frontends.files import save
from rewright.ir.errors import RewrightError
from rewright.optimize.kernel import Running, Sweep
from rewright.optimize.phases import variants
from rewright.optimize.planning.plan import KernelStep, LibraryStep, Plan
from rewright.optimize.remembered.entry import CERTIFICATE
from rewright.optimize.scalars.expressions import Expression
from rewright.optimize.scalars.properties import property_lines
from rewright.proof.calls import KEY

if TYPE_CHECKING:
    from rewright.optimize.api import Optimized


KEPT = ("explanation.txt", "kernels.cpp", CERTIFICATE, "program.json", "plan.json")
"""The files of a folder that are for people."""


def explain_result(found: Optimized) -> str:
    """All that is known of an optimised program, as text."""
    if found.entry is not None:
        return f"{found.entry.text('explanation.txt').rstrip()}\nremembered: it was not planned and proved again"
    lines = [f"status: {found.status}", f"reason: {found.reason}" if found.reason else ""]
    if found.graph is not None:
        lines += ["", "properties", *property_lines(found.graph)]
    if found.plan is not None:
        lines += [
            "",
            "decisions",
            *(f"  {d}" for d in found.plan.decisions or ["nothing had to be stored or left to a library"]),
        ]
        lines += ["", "steps"]
        for step in found.plan.steps:
            lines += [f"  library: {step.why}"] if isinstance(step, LibraryStep) else kernel_lines(found.plan, step)
    if found.work is not None:
        lines += ["", f"work: {found.work.ratio:.2f} times the operations of the program"]
    if found.floor is not None:
        lines += ["", f"speed: {found.runs} run", *(f"  {line}" for line in found.floor.lines())]
    lines += ["", "trust", f"  program = plan: {found.trust.evidence}, {found.trust.reason}"]
    lines += [f"  assuming that {a}" for a in found.trust.assumptions]
    lines += [f"  {u}" for u in found.trust.updates]
    if found.plan is not None and found.plan.kernels:
        lines.append(f"  plan = kernels: {_kernel_evidence(found)}")
    if found.calls is not None:
        lines += ["", "calls: kernels run where", *(f"  {line}" for line in found.calls.lines())]
    if found.checked is not None:
        lines.append(f"  kernels: {found.checked.reason}, largest relative error {found.checked.error:.1e}")
    lines += ["", "seconds: " + ", ".join(f"{k} {v:.2f}" for k, v in found.seconds.items())]
    return "\n".join(line for line in lines)


def _kernel_evidence(found: Optimized) -> str:
    """How the step from the plan to what is printed is known to be right."""
    verdict = found.trust.kernels
    if verdict is not None:
        return f"in Triton, with a GPU's first tiles, {verdict}"
    if found.printed is not None and found.printed.target == "cuda":
        return "tested; prove_kernels() proves what is printed in Triton"
    return "tested; they are printed from the same statements as those in Triton, which can be proved"


def kernel_lines(plan: Plan, step: KernelStep) -> list[str]:
    """What a kernel does, in words."""
    kernel = step.kernel
    grid = " x ".join(str(loop.size) for loop in kernel.grid) or "1"
    rows = "" if kernel.rows is None else f", {kernel.rows.size} rows"
    features = "" if kernel.features is None else f", {kernel.features.size} features"
    lines = [f"  {kernel.name}: grid {grid}{rows}{features}"]
    for number, sweep in enumerate(kernel.sweeps):
        lines.append(f"    pass {number + 1} over {sweep.lane.size}:")
        for product in sweep.products:
            lines.append(f"      product of tiles over {product.depth.size}, computed again and not stored")
        lines += [f"      {running_text(r)}" for r in sweep.running]
        lines += [f"      stores {plan.graph.nodes[s.tensor].type} along the lane" for s in sweep.stores]
        lines += [f"      {line}" for line in skip_lines(plan, sweep)]
    lines += [
        f"    stores {plan.graph.nodes[s.tensor].type} of {plan.graph.nodes[s.tensor].span}" for s in kernel.finals
    ]
    return lines


def running_text(running: Running) -> str:
    """What a reduction does."""
    assert running.value.bound is not None
    text = f"running {running.value.bound.kind}"
    if running.factors is not None:
        text += " of a product of tiles"
    if running.update.depends:
        kinds = ", ".join(dict.fromkeys(e.bound.kind for e in running.update.depends if e.bound))
        how = "a factor" if running.update.factor is not None else "an addend"
        how = "a factor and an addend" if running.update.factor and running.update.growth else how
        if running.update.reset is not None:
            text += f", follows the running {kinds} by starting again when it moves"
        else:
            text += f", follows the running {kinds} by {how} that does not depend on the element"
    if running.update.finish is not None:
        text += ", a factor that does not depend on the element is applied at the end"
    return text


def skip_lines(plan: Plan, sweep: Sweep) -> list[str]:
    """Which tiles are skipped or simpler."""
    found = variants(plan.table, sweep)
    lines: list[str] = []
    for number, value in found.skip:
        lines.append(
            f"tiles where {condition_text(found.conditions[number])} is {str(value).lower()} everywhere are skipped"
        )
    if found.read is not None and sweep.products:
        lines.append("tiles of which a mask that is read leaves nothing are skipped before their products, in C++")
    if found.plain is not None:
        lines.append("tiles where it is so nowhere carry no mask")
    for (number, value), _ in found.special:
        lines.append(
            f"tiles where {condition_text(found.conditions[number])} is {str(value).lower()} have code of their own"
        )
    if any(r.value.bound and r.value.bound.kind in ("or", "and") for r in sweep.running):
        lines.append("the pass stops where every state has the value that nothing changes")
    return lines


def condition_text(e: Expression) -> str:
    """A condition on indices."""
    if e.op in ("and", "or"):
        return f"({condition_text(e.arguments[0])} {e.op} {condition_text(e.arguments[1])})"
    if e.op == "not":
        return f"not {condition_text(e.arguments[0])}"
    if e.op in ("at_least_zero", "is_zero"):
        return f"{e.arguments[0].index} {'>=' if e.op == 'at_least_zero' else '='} 0"
    return str(e.value) if e.op == "constant" else e.op


def emit_files(found: Optimized, folder: Path) -> list[Path]:
    """Write code and explanation, and with a certificate the two programs that it is about, for ``rewright audit``."""
    try:
        return _emit(found, folder)
    except OSError as error:
        what = "it is a file" if folder.is_file() else (error.strerror or str(error)).lower()
        raise RewrightError(f"cannot write to {folder}: {what}; name a folder") from None


def _emit(found: Optimized, folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    if found.entry is not None:
        kept = [found.entry.folder / name for name in KEPT if (found.entry.folder / name).exists()]
        return [Path(shutil.copy(path, folder)) for path in kept]
    files = {"explanation.txt": found.explain() + "\n", **(found.printed.files if found.printed is not None else {})}
    paths: list[Path] = []
    for name, text in files.items():
        path = folder / name
        path.write_text(text)
        paths.append(path)
    if found.certificate is not None and found.trust.program is not None and found.trust.graph is not None:
        text = "" if found.calls is None else "\n".join(line for line in found.calls.lines() if line)
        replace(found.certificate, calls=tuple(text.splitlines())).save(folder / CERTIFICATE)
        said = {KEY: text} if text else {}
        for graph, name in ((found.trust.program, "program.json"), (found.trust.graph, "plan.json")):
            save(replace(graph, metadata=graph.metadata | said), folder / name)
        paths += [folder / name for name in (CERTIFICATE, "program.json", "plan.json")]
    return paths
