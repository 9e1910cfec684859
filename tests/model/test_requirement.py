import pickle
from pathlib import Path

import pytest
from pydantic import ValidationError

from gpufabric.core.errors import InputError
from gpufabric.model.requirement import (
    Candidate,
    GenericHost,
    KnownNames,
    Oversubscription,
    Requirement,
    SwitchChoice,
    load_requirement,
    parse_requirement,
)
from tests.model.known import KNOWN

EXAMPLES = sorted((Path(__file__).parent.parent.parent / "examples").glob("*.yaml"))
SHORTEST = b"gpus: 1024\nhost: dgx-h100\ncandidates: [infiniband, roce]\n"
GENERIC = "gpus: 64\nhost: {gpus: 8, nics: 8, nic_gbps: 400}\n"


def parse(text: str | bytes, known: KnownNames | None = KNOWN) -> Requirement:
    return parse_requirement(text.encode() if isinstance(text, str) else text, "spec.yaml", known)


def candidates(*lines: str) -> tuple[Candidate, ...]:
    entries = "".join(f"- {line}\n" for line in lines)
    return parse(f"gpus: 1024\nhost: dgx-h100\ncandidates:\n{entries}").candidates


def faults(text: str | bytes, known: KnownNames | None = KNOWN) -> list[str]:
    with pytest.raises(InputError) as caught:
        parse(text, known)
    return [str(fault) for fault in caught.value.faults]


# ------------------------------------------------------------------------------------ valid specs
def test_shortest_spec_has_all_defaults() -> None:
    spec = parse(SHORTEST)
    assert (spec.gpus, spec.hosts, spec.host, spec.name) == (1024, None, "dgx-h100", None)
    assert [(entry.name, entry.fabric) for entry in spec.candidates] == [
        ("infiniband", "infiniband"),
        ("roce", "roce"),
    ]
    first = spec.candidates[0]
    assert first.switch == SwitchChoice(leaf="best", spine="best", core="best")
    assert (first.topology, first.planes, first.tiers) == ("auto", None, None)
    assert first.oversubscription == Oversubscription(leaf=1.0, spine=1.0)
    assert spec.workload.kind == "training"
    assert not spec.workload.is_latency_sensitive
    assert spec.growth is None
    assert (spec.site.rack_power_kw, spec.site.rack_units) == (40.8, 48)
    assert (spec.site.currency, spec.site.currency_rate) == ("USD", None)
    assert spec.storage.wanted
    assert spec.management.wanted
    assert (spec.catalog, spec.catalog_folder, spec.spares_pct, spec.seed) == (None, None, None, 1)


def test_every_field_can_be_given() -> None:
    spec = parse("""\
name: all of it
gpus: 1024
hosts: 128
host: {gpus: 8, nics: 16, nic_gbps: 400, rails: 8, nics_per_rail: 2, ports_per_nic: 2,
       power_kw: 10.2, ru: 8, price_usd: 300000}
workload:
  kind: inference
  model: Llama3 70B
  sequences: 64
  prompt_tokens: 4096
  output_tokens: 512
  parallelism: {tp: 8, pp: 4, dp: 16, ep: 8, cp: 2}
  precision: fp8
  latency_sensitive: false
  gpudirect: true
candidates:
- name: first
  fabric: infiniband
  switch: {leaf: qm9700, spine: best}
  generation: ndr
  topology: rail
  planes: 1
  oversubscription: {leaf: 2:1, spine: 1}
  tiers: 3
  rails: 8
  su_hosts: 32
  pod_hosts: 64
  leafs: 8
  spines: 4
  leafs_per_host: 8
  hosts_per_rack: 4
  manager_ports: 0
  uplink_gbps: 400
  fill_cages: true
  optional: true
growth: {gpus: 2048, hosts: 256}
site:
  rack_power_kw: 44
  rack_units: 52
  racks_per_row: 12
  row_pitch_m: 3
  rack_pitch_m: 0.8
  tray_height_m: 3.1
  cable_slack_pct: 10
  cable_slack_m: 2
  region: eu-west
  currency: CNY
  currency_rate: 7.1
  currency_date: 2026-11-30
  pue: 1.2
  usd_per_kwh: 0.08
storage: {wanted: true, gbps_per_host: 200}
management: {wanted: false}
team: {infiniband: none, ethernet: expert, tools: telemetry}
offers:
- {name: acme, fabric: infiniband, usd_per_port_month: 45, term_months: 24}
cost:
  horizon_years: 5
  decide_by: p90
  budget_usd: 5000000
  draws: 1000
  assumptions: {energy.usd_per_kwh: 0.12, gpu_hour.usd.h100: [2, 3, 4]}
catalog: devices
spares_pct: 2.5
seed: 7
""")
    unset = {
        name
        for part in (
            spec,
            spec.workload,
            spec.workload.parallelism,
            spec.candidates[0],
            spec.site,
            spec.team,
            spec.cost,
        )
        for name in type(part).model_fields
        if name not in part.model_fields_set
    }
    assert unset == {"global_batch", "sequence_tokens"}, "these go with training"
    assert isinstance(spec.host, GenericHost)
    assert spec.host.n_rails == 8
    assert spec.cost.assumptions["energy.usd_per_kwh"].high == 0.12
    assert spec.cost.assumptions["gpu_hour.usd.h100"].mid == 3.0
    assert spec.offers[0].term_months == 24
    assert spec.candidates[0].oversubscription.total == 2.0
    assert spec.candidates[0].switch.core == "best"
    assert spec.catalog_folder == Path("devices")


@pytest.mark.parametrize(
    ("written", "leaf", "spine"),
    [
        ("1", 1.0, 1.0),
        ("2", 2.0, 1.0),
        ("1.5", 1.5, 1.0),
        ("2:1", 2.0, 1.0),
        ('"2:1"', 2.0, 1.0),
        ("1:2", 0.5, 1.0),
        ("0.25", 0.25, 1.0),
        ("1:1.125", 1 / 1.125, 1.0),
        ("[1, 7]", 1.0, 7.0),
        ("[1:1, 7:1]", 1.0, 7.0),
        ("[3]", 3.0, 1.0),
        ("{leaf: 1, spine: 7}", 1.0, 7.0),
        ("{spine: 15:1}", 1.0, 15.0),
    ],
)
def test_oversubscription(written: str, leaf: float, spine: float) -> None:
    (candidate,) = candidates(f"{{fabric: roce, oversubscription: {written}}}")
    assert candidate.oversubscription == Oversubscription(leaf=leaf, spine=spine)


@pytest.mark.parametrize(
    ("written", "name", "fabric", "generation", "switch"),
    [
        ("infiniband", "infiniband", "infiniband", None, "best"),
        ("infiniband-hdr", "infiniband-hdr", "infiniband", "hdr", "best"),
        ("infiniband-xdr:q3400-ra", "infiniband-xdr-q3400-ra", "infiniband", "xdr", "q3400-ra"),
        ("infiniband:QM9700", "infiniband-QM9700", "infiniband", None, "QM9700"),
        ("roce", "roce", "roce", None, "best"),
        ("roce:sn5600", "roce-sn5600", "roce", None, "sn5600"),
        ("roce:best", "roce-best", "roce", None, "best"),
    ],
)
def test_short_candidates(
    written: str, name: str, fabric: str, generation: str | None, switch: str
) -> None:
    (candidate,) = candidates(written)
    assert (candidate.name, candidate.fabric) == (name, fabric)
    assert candidate.generation == generation
    assert candidate.switch == SwitchChoice(leaf=switch, spine=switch, core=switch)


def test_names_are_made_from_the_fabric_and_keep_clear_of_given_names() -> None:
    found = candidates(
        "{fabric: roce}",
        "{fabric: roce, tiers: 3}",
        "roce",
        "{name: ROCE-2, fabric: infiniband}",
        "{name: null, fabric: infiniband}",
        "infiniband",
    )
    assert [entry.name for entry in found] == [
        "roce",
        "roce-3",
        "roce-4",
        "ROCE-2",
        "infiniband",
        "infiniband-2",
    ]


def test_candidate_is_found_by_name_short_form_or_only_fabric() -> None:
    spec = parse("gpus: 8\nhost: dgx-h100\ncandidates: [infiniband-ndr, roce, 'roce:sn5600']\n")
    assert spec.candidate("infiniband-ndr") is spec.candidates[0]
    assert spec.candidate("Infiniband") is spec.candidates[0]
    assert spec.candidate("roce") is spec.candidates[1]
    assert spec.candidate("roce:sn5600") is spec.candidates[2]
    with pytest.raises(InputError) as caught:
        spec.candidate("roce-sn560")
    assert str(caught.value) == (
        'spec.yaml:3:13: candidates: there is no candidate "roce-sn560". Expected: one of '
        'infiniband-ndr, roce, roce-sn5600. Did you mean "roce-sn5600"?'
    )


def test_fabric_does_not_stand_for_a_candidate_where_two_have_it() -> None:
    spec = parse("gpus: 8\nhost: dgx-h100\ncandidates: [infiniband-ndr, infiniband-xdr]\n")
    with pytest.raises(InputError, match='no candidate "infiniband"'):
        spec.candidate("infiniband")


@pytest.mark.parametrize(("written", "wanted"), [("true", True), ("false", False), ("{}", True)])
def test_networks_as_truth_or_mapping(written: str, wanted: bool) -> None:
    spec = parse(SHORTEST + f"storage: {written}\nmanagement: {written}\n".encode())
    assert (spec.storage.wanted, spec.management.wanted) == (wanted, wanted)


def test_inference_is_latency_sensitive_unless_told() -> None:
    assert parse(SHORTEST + b"workload: {kind: inference}\n").workload.is_latency_sensitive
    told = b"workload: {kind: inference, latency_sensitive: false}\n"
    assert not parse(SHORTEST + told).workload.is_latency_sensitive


@pytest.mark.parametrize(
    ("host", "n_rails"),
    [
        ("{gpus: 8, nics: 8, nic_gbps: 400}", 8),
        ("{gpus: 8, nics: 8, nic_gbps: 400, rails: 4}", 4),
        ("{gpus: 8, nics: 8, nic_gbps: 400, nics_per_rail: 2}", 4),
        ("{gpus: 8, nics: 1, nic_gbps: 200}", 1),
    ],
)
def test_rails_of_a_generic_host(host: str, n_rails: int) -> None:
    spec = parse(f"gpus: 64\nhost: {host}\ncandidates: [roce]\n")
    assert isinstance(spec.host, GenericHost)
    assert spec.host.n_rails == n_rails


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_line_ends_of_every_system(line_end: str) -> None:
    text = SHORTEST.decode().replace("\n", line_end)
    assert parse(text) == parse(SHORTEST)
    bad = text + f"seed: -1{line_end}"
    assert faults(bad)[0].startswith("spec.yaml:4:7: seed: found -1.")


def test_comments_document_start_and_json_are_yaml() -> None:
    spec = parse(SHORTEST)
    assert parse(b"# a comment\n---\n" + SHORTEST + b"...\n") == spec
    assert parse('{"gpus": 1024, "host": "dgx-h100", "candidates": ["infiniband", "roce"]}') == spec


# -------------------------------------------------------------------------- sizes and known names
def test_hosts_are_resolved_from_gpus_or_hosts() -> None:
    assert parse(SHORTEST).resolved_hosts(8) == 128
    assert parse("hosts: 31\nhost: dgx-h100\ncandidates: [roce]\n").resolved_hosts(8) == 31
    spec = parse(SHORTEST, None)
    with pytest.raises(InputError) as caught:
        spec.resolved_hosts(72)
    assert str(caught.value) == (
        "spec.yaml:1:7: gpus: 1,024 GPUs do not fill whole hosts of 72. Expected: a multiple "
        "of 72. Nearest: 1008 (14 x 72) or 1080 (15 x 72)."
    )


def test_growth_is_resolved_to_hosts() -> None:
    assert parse(SHORTEST).resolved_growth_hosts(8) == 128
    assert parse(SHORTEST + b"growth: {gpus: 4096}\n").resolved_growth_hosts(8) == 512
    assert parse(SHORTEST + b"growth: {hosts: 200}\n").resolved_growth_hosts(8) == 200


def test_names_are_checked_only_against_known_names() -> None:
    text = "gpus: 1020\nhost: my-host\ncandidates: ['roce:my-switch']\n"
    spec = parse(text, None)
    assert faults(text) == [
        (
            'spec.yaml:2:7: host: the catalogue has no host "my-host". Expected: one that '
            '"gpufabric catalog list" shows, or a mapping with gpus, nics, nic_gbps.'
        ),
        (
            'spec.yaml:3:14: candidates[0]: the catalogue has no switch "my-switch". Expected: one '
            'that "gpufabric catalog list" shows, or "best".'
        ),
    ]
    with pytest.raises(InputError) as caught:
        spec.check_against(KNOWN)
    assert [str(fault) for fault in caught.value.faults] == faults(text)
    spec.check_against(KnownNames(switches={"my-switch": ("roce", None)}, hosts={"my-host": 4}))


def test_known_names_in_any_spelling() -> None:
    for host in ("DGX-H100", "dgx h100", "DGX  H100", "dgx_h100"):
        assert parse(f"gpus: 1024\nhost: {host}\ncandidates: ['roce:SN5600']\n").host == host


def test_size_is_held_against_the_known_host_later() -> None:
    spec = parse("gpus: 1020\nhost: dgx-h100\ncandidates: [roce]\n", None)
    with pytest.raises(InputError, match=r"^spec.yaml:1:7: gpus: 1,020 GPUs do not fill"):
        spec.check_against(KNOWN)


def test_known_names_come_from_the_folder_of_the_spec(tmp_path: Path) -> None:
    (tmp_path / "devices").mkdir()
    path = tmp_path / "spec.yaml"
    path.write_bytes(SHORTEST + b"catalog: devices\n")
    asked: list[Path | None] = []

    def known(folder: Path | None) -> KnownNames:
        asked.append(folder)
        return KNOWN

    assert load_requirement(path, known).catalog_folder == tmp_path / "devices"
    path.write_bytes(SHORTEST)
    assert load_requirement(path, known).catalog_folder is None
    assert asked == [tmp_path / "devices", None]


def test_missing_catalogue_folder_is_a_fault_and_names_are_then_not_judged(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text("gpus: 8\nhost: mine\ncandidates: [roce]\ncatalog: device\n")
    with pytest.raises(InputError) as caught:
        load_requirement(path, lambda _folder: KNOWN)
    assert str(caught.value) == (
        f'{path}:4:10: catalog: there is no folder "device" beside the spec. '
        "Expected: a folder with device files."
    )


def test_faults_of_the_users_catalogue_are_told_with_those_of_the_spec(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_bytes(SHORTEST + b"seed: -1\n")

    def broken(_folder: Path | None) -> KnownNames:
        parse_requirement(b"", "devices/x.yaml")
        raise AssertionError

    with pytest.raises(InputError) as caught:
        load_requirement(path, broken)
    assert [fault.where for fault in caught.value.faults] == [
        "devices/x.yaml:1:1",
        f"{path}:4:7: seed",
    ]


# ---------------------------------------------------------------------------------------- objects
def test_place_of_a_field() -> None:
    spec = parse("gpus: 8\nhost: dgx-h100\ncandidates:\n- {fabric: roce, tiers: 2}\n")
    assert spec.where("candidates", 0, "tiers") == "spec.yaml:4:25: candidates[0].tiers"
    assert spec.where("candidates", 0, "planes") == "spec.yaml:4:3: candidates[0].planes"
    assert spec.where() == "spec.yaml:1:1"
    made = Requirement(gpus=8, host="dgx-h100", candidates=spec.candidates)
    assert made.where("candidates", 0, "tiers") == "candidates[0].tiers"


def test_spec_is_frozen_hashable_and_equal_whatever_its_file() -> None:
    spec = parse(SHORTEST)
    same = parse_requirement(b"# other\n" + SHORTEST, "other.yaml")
    assert (spec, hash(spec)) == (same, hash(same))
    with pytest.raises(ValidationError):
        spec.gpus = 8  # type: ignore[misc]


def test_pickled_spec_keeps_its_places() -> None:
    spec = pickle.loads(pickle.dumps(parse(SHORTEST)))
    assert spec == parse(SHORTEST)
    assert spec.where("host") == "spec.yaml:2:7: host"


def test_spec_made_in_python_must_agree_too() -> None:
    with pytest.raises(ValidationError, match=r"gpus: 12 GPUs do not fill whole hosts of 8\."):
        Requirement(
            gpus=12,
            host=GenericHost(gpus=8, nics=8, nic_gbps=400),
            candidates=(Candidate(name="one", fabric="roce"),),
        )
    with pytest.raises(ValidationError, match=r"gpus: is missing, and so is hosts\."):
        Requirement(host="dgx-h100", candidates=(Candidate(name="one", fabric="roce"),))
