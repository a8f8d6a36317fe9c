"""Protocol buffers survive reading and writing byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewright.frontends.hlo.wire import (
    Field,
    integers,
    pack_integers,
    read_fields,
    read_varint,
    write_fields,
    write_varint,
)
from rewright.ir.errors import RewrightError

varints = st.integers(0, 2**64 - 1)
numbers = st.integers(1, 2000)
fields = st.one_of(
    st.tuples(numbers, st.just(0), varints),
    st.tuples(numbers, st.just(1), st.binary(min_size=8, max_size=8)),
    st.tuples(numbers, st.just(2), st.binary(max_size=20)),
    st.tuples(numbers, st.just(5), st.binary(min_size=4, max_size=4)),
)


@given(st.lists(fields))
def test_fields_are_written_as_they_were_read(message: list[Field]) -> None:
    assert read_fields(write_fields(message)) == message


@given(varints)
def test_varints(value: int) -> None:
    data = write_varint(value)
    assert read_varint(data, 0) == (value, len(data))


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_negative_numbers_are_kept(values: list[int]) -> None:
    assert integers(pack_integers(7, values), 7) == tuple(values)


@pytest.mark.parametrize("data", [b"\x0a\x05abc", b"\x08", b"\x0f", b"\x08" + b"\xff" * 11])
def test_what_is_no_message_is_one_line(data: bytes) -> None:
    with pytest.raises(RewrightError, match="protocol buffer"):
        read_fields(data)
