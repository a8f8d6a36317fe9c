"""A repair is told where a line can be added, not inside of one."""

import inspect

import torch
import torch.distributed._functional_collectives as functional

import rewright as rw


def mean(x, labels, mesh=None):
    valid = (labels != -100).sum()
    total = (x * x).sum()
    if mesh is not None:
        total = functional.all_reduce(total, "sum", (mesh, 0))
    return total / valid


def test_a_count_is_reduced_where_it_is_made():
    x, labels = torch.randn(8, 4), torch.zeros(8, dtype=torch.int64)

    def build(mesh):
        return lambda x, labels: mean(x, labels, mesh), (x[:4], labels[:4])

    program = rw.capture_ranks(build, {"dp": 2})
    split = {"x": "Shard(0)", "labels": "Shard(0)"}
    verdict = rw.refine(rw.capture(mean, (x, labels)), program, split, {"output": "Replicate()"})
    line = inspect.getsourcelines(mean)[1] + 1
    assert verdict.findings[0].suggestion == f"insert all_reduce over dp after test_lines.py:{line}"


def test_what_a_line_reads_itself_is_told_with_that():
    x = torch.randn(8, 4)

    def whole(x, mesh=None):
        return (x * x).sum().sqrt()

    def build(mesh):
        return whole, (x[:4],)

    verdict = rw.refine(
        rw.capture(whole, (x,)), rw.capture_ranks(build, {"dp": 2}), {"x": "Shard(0)"}, {"output": "Replicate()"}
    )
    line = inspect.getsourcelines(whole)[1] + 1
    assert verdict.findings[0].suggestion == f"insert all_reduce over dp after the sum inside of test_lines.py:{line}"
