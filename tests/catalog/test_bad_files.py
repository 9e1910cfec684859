"""Device files that are wrong, each with the message it gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpufabric.catalog.load import load_catalog
from gpufabric.core.errors import InputError

GOOD = """\
device: switch
name: my-switch
title: My switch
vendor: generic
fabric: roce
generation: ethernet
ports:
  count: 64
  gbps: 400
  cages: 32
  cage: osfp
  breakouts: {200: 2}
  source: a quote
  date: 2026-11
  kind: vendor
"""

BAD = {
    "unknown key": (
        ("vendor: generic", "vender: generic"),
        [
            '1:1: vendor: "vendor" is missing. Add it.',
            (
                '4:1: vender: unknown key "vender". Expected: one of aliases, '
                "annual_failure_rate, asic, availability, buffer_mb, deployable, device, fabric, "
                "format_version, generation, hop_latency_ns, managed, name, optics, ports, "
                "power, price, role_hint, scale, size, title, uplinks, vendor. "
                'Did you mean "vendor"?'
            ),
        ],
    ),
    "unknown key in a group": (
        ("  cages: 32", "  cages: 32\n  weight: 3"),
        ['11:3: ports.weight: unknown key "weight". Expected: one of breakouts,'],
    ),
    "no source": (
        ("  source: a quote\n", ""),
        ['8:3: ports.source: "source" is missing. Add it.'],
    ),
    "empty source": (
        ("source: a quote", 'source: ""'),
        ['13:11: ports.source: "" found. Expected: a text that is not empty.'],
    ),
    "kind of source with a typo": (
        ("kind: vendor", "kind: datasheat"),
        ['15:9: ports.kind: "datasheat" found. Expected: one of measured, datasheet,'],
    ),
    "no date": (
        ("date: 2026-11", "date: last year"),
        ['14:9: ports.date: "last year" found. Expected: a date: YYYY, YYYY-MM, YYYY-MM-DD'],
    ),
    "text for a number": (
        ("count: 64", "count: many"),
        ['8:10: ports.count: "many" found. Expected: a whole number.'],
    ),
    "unit in a number": (
        ("gbps: 400", "gbps: 400G"),
        ['9:9: ports.gbps: "400G" found. Expected: a number.'],
    ),
    "quoted number": (
        ("gbps: 400", 'gbps: "400"'),
        ['9:9: ports.gbps: "400" found. Expected: a number.'],
    ),
    "half a port": (
        ("count: 64", "count: 64.5"),
        ["8:10: ports.count: 64.5 found. Expected: a whole number."],
    ),
    "truth value for a number": (
        ("cages: 32", "cages: true"),
        ["10:10: ports.cages: true found. Expected: a whole number."],
    ),
    "negative": (
        ("gbps: 400", "gbps: -400"),
        ["9:9: ports.gbps: -400 found. Expected: a number above 0."],
    ),
    "zero": (
        ("count: 64", "count: 0"),
        ["8:10: ports.count: 0 found. Expected: a number above 0."],
    ),
    "not a number at all": (
        ("gbps: 400", "gbps: .nan"),
        ["9:9: ports.gbps: nan found. Expected: a finite number."],
    ),
    "nothing": (
        ("gbps: 400", "gbps:"),
        ["ports.gbps: nothing found. Expected: a number."],
    ),
    "form factor with a typo": (
        ("cage: osfp", "cage: ofsp"),
        ['11:9: ports.cage: "ofsp" found. Expected: one of rj45,'],
    ),
    "cages that do not divide the ports": (
        ("cages: 32", "cages: 33"),
        ["8:3: ports: count must be a multiple of cages."],
    ),
    "breakout faster than the port": (
        ("{200: 2}", "{800: 2}"),
        ["8:3: ports: a breakout must be slower than the port."],
    ),
    "breakout with more than the port has": (
        ("{200: 2}", "{200: 4}"),
        ["8:3: ports: a breakout must not exceed the speed of the port."],
    ),
    "breakout that is no speed": (
        ("{200: 2}", "{fast: 2}"),
        ['12:15: ports.breakouts.fast: "fast" found. Expected: a number.'],
    ),
    "list for a mapping": (
        ("{200: 2}", "[200, 2]"),
        ["12:14: ports.breakouts: a list found. Expected: a mapping."],
    ),
    "mapping for a text": (
        ("title: My switch", "title: {my: switch}"),
        ["3:8: title: a mapping found. Expected: a text."],
    ),
    "name that is no slug": (
        ("name: my-switch", "name: My Switch"),
        ['2:7: name: "My Switch" found. Expected: a slug: lower-case letters, digits,'],
    ),
    "protocol with a typo": (
        ("fabric: roce", "fabric: rocev2"),
        ['5:9: fabric: "rocev2" found. Expected: one of infiniband, roce. Did you mean "roce"?'],
    ),
    "unknown kind of device": (
        ("device: switch", "device: swich"),
        ['1:9: device: "swich" found. Expected: one of switch, nic, host, part, equipment,'],
    ),
    "no kind of device": (
        ("device: switch\n", ""),
        ['1:1: device: "device" is missing. Expected: one of switch, nic, host,'],
    ),
    "later format": (
        ("device: switch", "device: switch\nformat_version: 2"),
        ["2:17: format_version: 2 found. Expected: one of 1."],
    ),
    "range the wrong way round": (
        (
            "ports:",
            "buffer_mb: {low: 9, high: 4, source: x, date: 2026, kind: conflict}\nports:",
        ),
        ["7:12: buffer_mb: low must not exceed high."],
    ),
    "prices that fall": (
        (
            "ports:",
            (
                "price: {low_usd: 9, mid_usd: 4, high_usd: 5, source: x, date: 2026, "
                "kind: vendor}\nports:"
            ),
        ),
        ["7:8: price: low_usd, mid_usd and high_usd must rise."],
    ),
    "key twice": (("gbps: 400", "gbps: 400\n  gbps: 800"), ["10:3", '"gbps"', "line 9"]),
    "tab": (("  gbps: 400", "\tgbps: 400"), ["9:1"]),
    "anchor and alias": (("title: My switch", "title: &a My switch\nasic: *a"), ["3:8", "4:7"]),
    "merge key": (("  cages: 32", "  <<: {cages: 32}"), ["10:3"]),
    "tag": (("title: My switch", "title: !!python/name:os.system x"), ["3:8"]),
    "two documents": (("ports:", "---\nports:"), ["7:1"]),
    "open bracket": (("{200: 2}", "{200: 2"), ["12:14"]),
}


@pytest.mark.parametrize(("change", "expected"), BAD.values(), ids=list(BAD))
def test_bad_file(tmp_path: Path, change: tuple[str, str], expected: list[str]) -> None:
    assert change[0] in GOOD
    path = tmp_path / "mine.yaml"
    path.write_text(GOOD.replace(*change), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_catalog(tmp_path)
    text = str(caught.value).replace(f"{path}:", "")
    for message in expected:
        assert message in text
    exact = [message for message in expected if message.count(":") > 1]
    if len(exact) == len(expected):
        assert len(caught.value.faults) == len(expected), text


def test_the_good_file_is_good(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(GOOD, encoding="utf-8")
    assert load_catalog(tmp_path).switch("my-switch").port_count_at(200) == 128


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"\xef\xbb\xbf" + GOOD.encode(), "mine.yaml"),
        (GOOD.encode().replace(b"My switch", b"My sw\xfftch"), "mine.yaml:3:"),
        (GOOD.encode("utf-16"), "mine.yaml"),
        (b"", "mine.yaml:1:1"),
        (b"- a\n- b\n", "mine.yaml:1:1"),
        (b"just words\n", "mine.yaml:1:1"),
        (b"a: " + b"[" * 100 + b"]" * 100, "mine.yaml:1:"),
        (b"# long\n" * 400_000, "mine.yaml"),
        (b"a: \x00\n", "mine.yaml"),
    ],
    ids=["bom", "latin-1", "utf-16", "empty", "list", "text", "deep", "huge", "nul"],
)
def test_bad_bytes(tmp_path: Path, raw: bytes, expected: str) -> None:
    (tmp_path / "mine.yaml").write_bytes(raw)
    with pytest.raises(InputError) as caught:
        load_catalog(tmp_path)
    assert expected in str(caught.value)


PART = """\
device: part
name: my-part
title: My part
vendor: generic
form: {form}
fabrics: [roce]
link: {{gbps: 800, links: {links}, link_gbps: 400, source: x, date: 2026, kind: assumed{more}}}
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            PART.format(form="dac", links=2, more=""),
            "1:1: link of a dac needs lane_gbps, cage, far_cage, reach_m.",
        ),
        (
            PART.format(form="transceiver", links=2, more=", cage: osfp, reach_m: 5"),
            "1:1: link of a transceiver needs lane_gbps, fibre.",
        ),
        (
            PART.format(
                form="dac", links=3, more=", lane_gbps: 50, cage: osfp, far_cage: osfp, reach_m: 2"
            ),
            "1:1: links times link_gbps must not exceed gbps.",
        ),
        (
            PART.format(form="splitter", links=2, more=", fibre: os2-lc"),
            "1:1: fan_out of a splitter must be at least 2.",
        ),
        (
            PART.format(form="dacs", links=2, more=""),
            (
                '5:7: form: "dacs" found. Expected: one of transceiver, dac, acc, aec, aoc, '
                'fibre, splitter. Did you mean "dac"?'
            ),
        ),
    ],
)
def test_bad_part(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_catalog(tmp_path)
    assert str(caught.value) == f"{path}:{expected}"


HOST = """\
device: host
name: my-host
title: My host
vendor: generic
accelerators: {{count: 4, model: X, source: us, date: 2026, kind: assumed}}
nics: {{model: connectx-7, count: 4, gbps: 400, rail_pattern: {rails}, cage: osfp,
       nics_per_cage: {per}, source: us, date: 2026, kind: assumed}}
management: {{ports: 1, source: us, date: 2026, kind: assumed}}
"""


@pytest.mark.parametrize(
    ("rails", "per", "expected"),
    [
        ("[0, 1, 2]", 1, "6:7: nics: count must be a multiple of the length of rail_pattern."),
        ("[0, 2]", 1, "6:7: nics: rails must be numbered from 0 without gaps."),
        ("[0, -1]", 1, "6:66: nics.rail_pattern[1]: -1 found. Expected: a number not below 0."),
        ("[]", 1, "6:62: nics.rail_pattern: a list found. Expected: a list that is not empty."),
        ("[0, 1]", 3, "6:7: nics: count must be a multiple of nics_per_cage."),
    ],
)
def test_bad_host(tmp_path: Path, rails: str, per: int, expected: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(HOST.format(rails=rails, per=per), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_catalog(tmp_path)
    assert str(caught.value) == f"{path}:{expected}"
