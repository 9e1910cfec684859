"""Hostile input to the packet engine's commands: one clear error, exit 2, nothing half-written."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpufabric.model.files import save_fabric
from tests.cli.running import run
from tests.sim.plants import INFINIBAND, RAIL, fabric

Capture = pytest.CaptureFixture[str]

PATTERN = ("--bytes", "100KB", "--fan-in", "4")
TRAFFIC = ("simulate", "traffic", "rail.fab", "--engine", "packet", "--pattern", "incast", *PATTERN)
COMPARE = (
    "simulate",
    "compare",
    "rail.fab",
    "--bytes",
    "100KB",
    "--pattern",
    "incast",
    "--jobs",
    "1",
)
TUNE = ("tune", "ecn", "rail.fab", "--traffic", "incast", *PATTERN, "--jobs", "1")

PROFILES: list[tuple[str | bytes, str]] = [
    ("buffer: {total_bytes: 0}\n", "buffer.total_bytes"),
    ("buffer: {total_bytes: 1e30}\n", "mine.yaml:1:23: buffer.total_bytes"),
    ("headers: {data_bytes: -3}\n", "mine.yaml:1:23: headers.data_bytes: the value is -3."),
    ("headers: {gap_bytes: 1e12}\n", "headers.gap_bytes: the value is 1000000000000."),
    ("overrides: [{ports: [99999]}]\n", "overrides[0].ports[0]: the value is 99999."),
    ("overrides: [{switches: [-1]}]\n", "overrides[0].switches[0]: the value is -1."),
    ("overrides: [{switches: [leaf-9]}]\n", "mine: overrides[0].switches[0]: there is no switch"),
    ("overrides: [{switches: [1.5]}]\n", 'there is no switch "1.5"'),
    ("overrides: [{switches: leaf}]\n", "overrides[0].switches: this is no list."),
    ("overrides: [{switches: [[1]]}]\n", "overrides[0].switches[0]"),
    ("overrides: [{classes: [9]}]\n", "overrides[0].classes[0]: the value is 9."),
    ("overrides: [{pmax: 7}]\n", "mine.yaml:1:20: overrides[0].pmax: the value is 7.0."),
    ("watchdog: {action: explode}\n", "mine.yaml:1:20: watchdog.action: the action is 'explode'."),
    ("pause_time: {quanta: 70000}\n", "pause_time.quanta: the value is 70000."),
    ("classes: []\n", "classes: 0 classes."),
    ("transport: {mtu_bytes: 1000000000}\n", "transport.mtu_bytes"),
    ("dcqcn: {rpg_min_rate_gbps: 0}\n", "dcqcn.rpg_min_rate_gbps"),
    ("controls: [{kind: dcqcn}]\n", "it is set, and so are controls."),
    ("draws: [2.0]\n", "draws: a number is not from 0 to below 1."),
    ("seed: 99999999999999999999999999\n", "seed: the value is"),
    ("forwarding_ns: .inf\n", "forwarding_ns: the value is inf."),
    ("pause_reaction_ns: .nan\n", "pause_reaction_ns: the value is nan."),
    ("credits: {cut_through_bytes: 64}\n", "classes: 0 of 2 classes are credited."),
    ("base: infiniband-default\necn: {pmax: 0.1}\n", "ecn: with credits."),
    (b"\xff\xfe\x00bad", "is not UTF-8"),
    ("{" * 5000, "5,000 characters"),
    ("ecn: !!python/object:os.system {}\n", "a tag (!) is not allowed here."),
]

OPTIONS: list[tuple[tuple[str, ...], str]] = [
    ((*TRAFFIC, "--profile", "."), "--profile: there is no profile"),
    ((*TRAFFIC, "--profile", "roce-tunde"), 'Did you mean "roce-tuned"?'),
    ((*TRAFFIC, "--profile", "infiniband-default", "--sweep", "ecn.pmax=0.1,0.2"), "ecn"),
    ((*TRAFFIC, "--fail", "link:nowhere[1]"), 'there is no host or switch "nowhere".'),
    ((*TRAFFIC, "--fail", "switch:leaf-su01-r0@5..1"), '"5..1" is no time.'),
    ((*TRAFFIC, "--fail", "switch:leaf-su01-r0@nan"), '"nan" is no time.'),
    ((*TRAFFIC, "--fail", ""), '"" is no failure.'),
    ((*TRAFFIC, "--fault", "pausestorm port=host-05[nic1]"), 'Did you mean "pause-storm"?'),
    ((*TRAFFIC, "--fault", "pause-storm port=host-05[nic1] end_us=1e300"), "end_us: the value is"),
    ((*TRAFFIC, "--fault", "{" * 5000), "at most 4,096 characters"),
    ((*TRAFFIC, "--engine", "flow", "--fault", "override pmax=1"), "is for --engine packet."),
    ((*TRAFFIC, "--bytes", "1e18"), "Take fewer --bytes or --gpus."),
    ((*TRAFFIC, "--until", "nan"), "--until: the value is nan."),
    ((*TRAFFIC, "--reconverge", "nan"), "--reconverge"),
    ((*TRAFFIC, "-o", "rail.fab"), "is no folder."),
    ((*TRAFFIC, "--bins", "-1"), "--bins: -1 bins."),
    ((*TRAFFIC, "--bins", "100000"), "--bins: 100000 bins."),
    # Beside another fault, so before any run.
    ((*TRAFFIC, "--until", "nan", "-o", "/proc/x/y"), "/proc/x/y: cannot be written"),
    ((*TRAFFIC, "--until", "nan", "-o", "rail.fab/y"), "rail.fab/y: cannot be written"),
    ((*TRAFFIC, "--until", "nan", "-o", "x" * 300), "cannot be written"),
    ((*TRAFFIC, "--seeds", "2", "--jobs", "0", "-o", "/proc/x"), "/proc/x: cannot be written"),
    ((*COMPARE, "--skew", "nan", "-o", "/proc/x"), "/proc/x: cannot be written"),
    ((*TUNE, "--seeds", "0", "-o", "/proc/x.yaml"), "/proc/x.yaml: cannot be written"),
    ((*TUNE, "--seeds", "0", "-o", "rail.fab/x.yaml"), "rail.fab/x.yaml: cannot be written"),
    ((*COMPARE, "--hot-share", "2"), "--hot-share: is for --pattern hotspot alone."),
    ((*COMPARE, "--pattern", "ring", "--gpus", "2"), "no flow crosses the network."),
    ((*COMPARE, "--iterations", "1000000000"), "--iterations: 1000000000 iterations."),
    ((*COMPARE, "--skew", "nan"), "--skew: the value is nan."),
    ((*COMPARE, "--variant", ""), 'there is no variant "".'),
    ((*COMPARE, "--pattern", "nosuch"), 'there is no pattern "nosuch".'),
    ((*COMPARE, "-o", "/proc/x"), "cannot be written"),
    ((*TUNE, "--traffic", "nosuch"), '--traffic: there is no pattern "nosuch".'),
    ((*TUNE, "--traffic", "ring", "--gpus", "2"), "--traffic: no flow crosses the network."),
    ((*TUNE, "--name", ""), '--name: "" found.'),
    ((*TUNE, "--name", "a: b\n#x"), "--name:"),
    ((*TUNE, "--tolerance", "nan"), "--tolerance: the value is nan."),
    (("simulate", "profile", "nosuch"), 'there is no profile "nosuch".'),
    (("simulate", "compare", ".", "--iterations", "1"), "cannot be read"),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    save_fabric(fabric(RAIL), folder / "rail.fab")
    save_fabric(fabric(INFINIBAND), folder / "ib.fab")
    return folder


def check(capsys: Capture, folder: Path, words: tuple[str, ...], expected: str) -> None:
    before = {path.name for path in folder.iterdir()}
    ended = run(capsys, *words)
    assert ended.code == 2, ended
    assert ended.out == ""
    assert expected in ended.err
    assert "Traceback" not in ended.err
    assert {path.name for path in folder.iterdir()} == before


@pytest.mark.parametrize(("text", "expected"), PROFILES)
def test_a_hostile_profile_is_refused(
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
    made: Path,
    text: str | bytes,
    expected: str,
) -> None:
    monkeypatch.chdir(made)
    Path("mine.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    check(capsys, made, (*TRAFFIC, "--profile", "mine.yaml"), expected)


@pytest.mark.parametrize(("words", "expected"), OPTIONS)
def test_hostile_options_are_refused(
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
    made: Path,
    words: tuple[str, ...],
    expected: str,
) -> None:
    monkeypatch.chdir(made)
    check(capsys, made, words, expected)


def test_messages_of_no_bytes_can_be_compared(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, made: Path
) -> None:
    """RDMA has writes without data; what is wrong is wrong on their way all the same."""
    monkeypatch.chdir(made)
    variants = ("--variant", "roce-tuned", "--variant", "mtu-mismatch", "--variant", "slow-host")
    ended = run(capsys, *COMPARE, "--bytes", "0", "--iterations", "1", *variants)
    assert (ended.code, ended.err) == (0, "")
