"""Certificates of right programs hold, survive a file, and are refused for any other program."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rewright.ir.errors import RewrightError
from rewright.ir.placement import Placement, place
from rewright.proof.certificate import Certificate, Repetition
from rewright.proof.checker import Damaged, OtherPrograms, Refused, audit
from rewright.proof.relations import is_spelled
from rewright.refine import refine
from tests.programs import Pair, mlp, sequence_parallel_norm, vocabulary_embedding
from tests.proof.programs import PROGRAMS, addends, chosen_weights, deep, routed_by_table, two_axes, unplaced


def certified(pair: Pair) -> Certificate:
    found = refine(*pair).certificate
    assert found is not None
    return found


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_proved_is_audited_also_from_a_file(name: str, tmp_path: Path) -> None:
    pair = PROGRAMS[name]()
    certificate = certified(pair)
    found = audit(certificate, *pair)
    assert found.equations == len(certificate.equations)
    for file in ("certificate.json", "certificate.json.gz"):
        certificate.save(tmp_path / file)
        read = Certificate.load(tmp_path / file)
        assert read == certificate
        assert read.intact
        audit(read, *pair)


def test_places_of_the_largest_lie_on_their_axis_and_not_on_a_part_of_it() -> None:
    assert refine(*chosen_weights(), audit=True).status == "proved"
    assert refine(*chosen_weights(positions=4), audit=True).status == "refuted"


def test_what_a_table_holds_follows_from_what_its_rows_are_known_by() -> None:
    assert refine(*routed_by_table(), audit=True).status == "proved"
    assert refine(*routed_by_table(experts=2), audit=True).status == "refuted"


def test_layers_that_repeat_are_stated_once() -> None:
    few, many = certified(deep(6)), certified(deep(12))
    assert sum(isinstance(e, Repetition) for e in many.equations) >= 1
    assert len(many.equations) == len(few.equations) + 6 * (
        4 + 1
    )  # four nodes of the model, all ranks by one repetition
    assert audit(many, *deep(12)).proved == audit(few, *deep(6)).proved


def test_lemmas_that_were_proved_before_are_not_proved_again() -> None:
    pair, store = mlp(2), set[str]()
    certificate = certified(pair)
    assert audit(certificate, *pair, store).proved > 0
    assert audit(certificate, *pair, store).proved == 0


def test_more_ranks_bring_lemmas_in_proportion() -> None:
    """Not with their square: a sum over all ranks is one lemma, and each rank's chunk of it another."""
    found: list[int] = []
    for world in (8, 16, 32):
        pair = sequence_parallel_norm(world, tokens=2 * world, inner=2 * world)
        certificate = refine(*pair).certificate
        assert certificate is not None
        found.append(audit(certificate, *pair).proved)
    assert found[2] - found[1] == 2 * (found[1] - found[0])


def test_a_certificate_for_other_programs_says_which() -> None:
    certificate = certified(mlp(2))
    other, program = mlp(2, batch=5)
    with pytest.raises(OtherPrograms, match="sequential program"):
        audit(certificate, other, mlp(2)[1])
    with pytest.raises(OtherPrograms, match="program of rank 0"):
        audit(certificate, mlp(2)[0], program)
    with pytest.raises(OtherPrograms, match="the mesh"):
        audit(certificate, *mlp(4))


def test_what_the_capture_knows_of_inputs_must_be_what_the_certificate_says() -> None:
    sequential, program = mlp(2)
    certificate = certified((sequential, program))
    wrong = {**program.inputs, "x": place((3, 4), program.mesh, ["Partial(sum)"])}
    with pytest.raises(Refused, match="'x'"):
        audit(certificate, sequential, replace(program, inputs=wrong))
    audit(certificate, *unplaced((sequential, program)))


def test_addends_of_an_output_are_no_replicas_of_it() -> None:
    sequential, program = addends()
    certificate = certified((sequential, program))
    output = certificate.outputs["y"]
    everywhere = replace(output, placement=place((2, 4), program.mesh, ["Replicate()"]))
    forged = replace(certificate, outputs={**certificate.outputs, "y": everywhere})
    with pytest.raises(Refused, match="output 'y'"):
        audit(forged, *unplaced((sequential, program)))


def test_the_notation_of_a_placement_is_believed_only_where_it_says_what_ranks_hold() -> None:
    sequential, program = two_axes()
    certificate = certified((sequential, program))
    x = certificate.relations["x"]
    whole = sequential.nodes[sequential.inputs["x"]].type
    assert is_spelled(x, whole, program.mesh)
    assert not is_spelled(replace(x, printed=("Replicate()", "Replicate()")), whole, program.mesh)
    assert not is_spelled(replace(x, printed=("a cut", "")), whole, program.mesh)


def test_an_output_that_nobody_holds_is_not_claimed() -> None:
    sequential, program = mlp(2)
    certificate = certified((sequential, program))
    output = certificate.outputs["output"]
    forged = Placement(((((0, 2),), ((0, 4),)),) * 2, ("a cut",))
    with pytest.raises(Refused, match="not all of it"):
        audit(
            replace(certificate, outputs={"output": replace(output, placement=forged)}),
            *unplaced((sequential, program)),
        )


def test_facts_are_told_as_assumptions() -> None:
    certificate = certified(vocabulary_embedding(2))
    assert any("input_ids lie in [0, 12)" in text for text in certificate.assumptions)
    assert "look-ups of the ranks stay in range" in certificate.assumptions
    assert len(certificate.assumptions) == 3


def test_an_input_that_is_looked_up_in_parts_has_a_fact_for_each_part() -> None:
    pair = vocabulary_embedding(2, tokens=6, batches=2)
    certificate = certified(pair)
    assert [fact.window for fact in certificate.facts] == [((0, 3),), ((3, 3),)]
    audit(certificate, *pair)
    for fact in certificate.facts:  # what is needed of one part does not follow from what is known of the other
        with pytest.raises(Refused, match="does not follow"):
            audit(replace(certificate, facts=(fact,)), *pair)


def test_a_file_that_was_changed_is_refused_at_the_end(tmp_path: Path) -> None:
    pair = mlp(2)
    path = tmp_path / "certificate.json"
    certified(pair).save(path)
    text = path.read_text()
    path.write_text(text.replace('","digest":"', '", "digest":"').replace('"assumptions":[', '"assumptions": ['))
    read = Certificate.load(path)
    assert not read.intact
    with pytest.raises(Damaged, match="changed after it was written"):
        audit(read, *pair)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"version":1', '"version":2', "version 2"),
        ('"format":"rewright.certificate"', '"format":"x"', "no certificate"),
        ('"facts":[]', '"facts":[[0]]', r"facts\[0\] is malformed"),
        ('"facts":[]', '"facts":{}', "facts is malformed"),
        ('"facts":[],', "", "'facts' is missing"),
        ('"facts":[]', '"facts":[],"more":1', "no entry 'more'"),
        ('"terms":[[0]', '"terms":[[99]', r"terms\[0\] is malformed: it names entry 99"),
        ('"equations":[["step",', '"equations":[["leap",', r"equations\[0\] is malformed"),
        ('"equations":[["step",-1', '"equations":[["step",-1.0', r"equations\[0\] is malformed: -1.0 is no integer"),
        ('"equations":[["step",-1', '"equations":[["step",true', r"equations\[0\] is malformed: True is no integer"),
        ('"mesh":[["tp",2]]', '"mesh":[["tp"]]', r"mesh\[0\] is malformed"),
        ("[[0,[0,1]]", '[["2*",[0,1]]', "is malformed"),
        ('"apply"', '"magic"', "there are no terms of kind 'magic'"),
    ],
)
def test_a_malformed_file_is_one_sentence_that_names_the_place(old: str, new: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    certified(mlp(2)).save(path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(RewrightError, match=says) as error:
        Certificate.load(path)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("length", [0, 1, 20, 200, 1000, -2])
def test_a_truncated_file_is_refused(length: int, tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    certified(mlp(2)).save(path)
    path.write_text(path.read_text()[:length])
    with pytest.raises(RewrightError, match=str(path)):
        Certificate.load(path)


def test_a_certificate_is_written_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    certificate = certified(mlp(2))
    with pytest.raises(RewrightError, match="no name of a certificate"):
        certificate.save(tmp_path / "certificate.rwt")
    with pytest.raises(RewrightError, match="cannot write"):
        certificate.save(tmp_path / "nowhere" / "certificate.json")
    assert list(tmp_path.iterdir()) == []
