"""The eight questions that matter where no spec exists, and the spec that their answers make."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gpufabric.catalog.collection import Catalog
from gpufabric.catalog.cost_constants import gpu_hour_key
from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _
from gpufabric.model.known_names import KnownNames
from gpufabric.model.spec_parts import MAX_GPUS

__all__ = ["Answers", "Question", "checked", "questions", "spec_from", "spec_text"]

Answers = Mapping[str, str]
"""Answers by the key of their question, as they were written."""

Spec = dict[str, Any]
_Read = Callable[[str, KnownNames, Answers], Spec]

SKILLS = ("none", "basic", "expert")
KINDS = ("training", "inference")
AIMS = {"cost": "mean", "stability": "p90"}
MOST_USD = 1e12
MOST_YEARS = 15
GPU_HOUR = "gpu_hour_usd"
"""Stands for a GPU-hour's value until the host tells which GPU it is."""
_SIZE = re.compile(r"^[0-9][0-9_,' ]*[kK]?$")


@dataclass(frozen=True)
class Question:
    """One question.

    Parameters
    ----------
    key
        Stable name, by which a file of answers gives it.
    text
        The question.
    hint
        What an answer looks like.
    default
        What an empty answer means; empty where one must be given.
    read
        Turns an answer into its part of the spec, or raises `InputError`.
    """

    key: str
    text: str
    hint: str
    default: str
    read: _Read


def questions() -> tuple[Question, ...]:
    """Return the questions in the order in which they are asked."""
    return (
        Question(
            "host", _("Which host?"), _("a name from gpufabric catalog list"), "dgx-h100", _host
        ),
        Question("gpus", _("How many GPUs?"), _("a number, such as 1024"), "", _gpus),
        Question(
            "workload",
            _("What will run?"),
            _("training or inference, and a model if you know it: training llama3-70b"),
            "training",
            _workload,
        ),
        Question("growth", _("How many GPUs later?"), _("a number, or no"), "no", _growth),
        Question(
            "team",
            _("What can the team do, with InfiniBand and with lossless Ethernet?"),
            _("two of none, basic, expert: basic expert"),
            "basic basic",
            _team,
        ),
        Question(
            "aim",
            _("What counts most, and what may the networks cost at the start, in USD?"),
            _("cost or stability, and an amount if there is a limit: cost 5000000"),
            "cost",
            _aim,
        ),
        Question(
            "subscription",
            _("May the network be had as a service?"),
            _("yes, no, or what a provider asks for a GPU's port, in USD a month: 45"),
            "yes",
            _subscription,
        ),
        Question(
            "value",
            _("What is a GPU-hour worth, in USD, and for how many years is it counted?"),
            _("two numbers: 3 4; or market, for rental prices and 4 years"),
            "market",
            _value,
        ),
    )


def spec_from(answers: Answers, catalog: Catalog) -> Spec:
    """Return the spec that answers make, as a mapping.

    Parameters
    ----------
    answers
        By key; those left out or empty take the default of their question.
    catalog
        Whose hosts, models and numbers may be named.

    Raises
    ------
    InputError
        With all faults: keys that are no question, answers that mean nothing or are missing.
    """
    known = catalog.known_names()
    asked = {question.key: question for question in questions()}
    faults = [
        Fault(
            key[:64],
            _("there is no such question."),
            _("one of {names}").format(names=", ".join(asked)),
            nearest(key[:64], list(asked)),
        )
        for key in answers
        if key not in asked
    ]
    spec: Spec = {}
    for question in asked.values():
        try:
            spec |= question.read(_answer(question, answers), known, answers)
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(faults)
    usd = spec["cost"].pop(GPU_HOUR, None)
    if usd is not None:
        key = gpu_hour_key(catalog.host(spec["host"]).gpu or "")
        spec["cost"]["assumptions"] = {key: usd}
    return {**spec, "candidates": "auto"}


def checked(question: Question, text: str, known: KnownNames, answers: Answers) -> str:
    """Return an answer as it counts, the default where it is empty.

    Raises
    ------
    InputError
        If it means nothing, or there is none.
    """
    found = _answer(question, {question.key: text})
    question.read(found, known, answers)
    return found


def _answer(question: Question, answers: Answers) -> str:
    given = answers.get(question.key, "").strip() or question.default
    if not given:
        raise InputError(Fault(question.key, _("there is no answer."), question.hint))
    return given


def spec_text(spec: Spec) -> str:
    """Return a spec as YAML."""
    lines = [
        "# " + _("Written by gpufabric advise; what is left out takes its documented default."),
        *_lines(spec, 0),
    ]
    return "\n".join(lines) + "\n"


def _lines(part: Mapping[str, Any], depth: int) -> list[str]:
    lines = []
    for key, value in part.items():
        head = "  " * depth + key + ":"
        if isinstance(value, Mapping):
            lines += [head, *_lines(value, depth + 1)]
        elif isinstance(value, list):
            lines.append(head)
            for entry in value:
                first, *rest = _lines(entry, depth + 1)
                lines += ["  " * depth + "- " + first.strip(), *rest]
        else:
            lines.append(f"{head} {_scalar(value)}")
    return lines


def _scalar(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _wrong(key: str, found: str, expected: str, remedy: str = "") -> InputError:
    return InputError(
        Fault(key, _('"{found}" is no answer.').format(found=found[:64]), expected, remedy)
    )


def _host(text: str, known: KnownNames, _answers: Answers) -> Spec:
    if known.host_gpus(text) is None:
        what = _("a host of the catalogue, such as {name}").format(name="dgx-h100")
        raise _wrong("host", text, what, nearest(text[:64].lower(), sorted(known.hosts)))
    return {"host": text}


def _size(key: str, text: str, known: KnownNames, answers: Answers) -> int:
    """Return a number of GPUs that fills whole hosts."""
    what = _("a whole number from 1 to {most}").format(most=f"{MAX_GPUS:,}")
    if not _SIZE.fullmatch(text):
        raise _wrong(key, text, what)
    is_thousands = text[-1] in "kK"
    digits = re.sub(r"[^0-9]", "", text)
    gpus = int(digits[:9]) * (1024 if is_thousands else 1)
    if not 1 <= gpus <= MAX_GPUS:
        raise _wrong(key, text, what)
    each = known.host_gpus(answers.get("host", "").strip() or questions()[0].default)
    if each and gpus % each:
        lower, upper = gpus // each * each, (gpus // each + 1) * each
        raise InputError(
            Fault(
                key,
                _("{gpus} GPUs do not fill hosts of {each}.").format(gpus=gpus, each=each),
                _("a multiple of {each}").format(each=each),
                _("Take {lower} or {upper}.").format(lower=lower, upper=upper)
                if lower
                else _("Take {upper}.").format(upper=upper),
            )
        )
    return gpus


def _gpus(text: str, known: KnownNames, answers: Answers) -> Spec:
    return {"gpus": _size("gpus", text, known, answers)}


def _growth(text: str, known: KnownNames, answers: Answers) -> Spec:
    if text.lower() in ("no", "none"):
        return {}
    later = _size("growth", text, known, answers)
    try:
        today = _size("gpus", answers.get("gpus", "").strip() or "1", known, answers)
    except InputError:
        return {}
    if later < today:
        raise InputError(
            Fault(
                "growth",
                _("{later} is less than today's {today}.").format(later=later, today=today),
                _("at least as many, or no"),
            )
        )
    return {"growth": {"gpus": later}}


def _workload(text: str, known: KnownNames, _answers: Answers) -> Spec:
    kind, *rest = text.split()
    expected = _("training or inference, then a model or nothing")
    if kind.lower() not in KINDS or len(rest) > 1:
        raise _wrong("workload", text, expected, nearest(kind[:64].lower(), list(KINDS)))
    if not rest:
        return {"workload": {"kind": kind.lower()}}
    if not known.has_model(rest[0]):
        what = _("one of {names}").format(names=", ".join(sorted(known.models)))
        raise _wrong("workload", rest[0], what, nearest(rest[0][:64], sorted(known.models)))
    return {"workload": {"kind": kind.lower(), "model": rest[0]}}


def _team(text: str, _known: KnownNames, _answers: Answers) -> Spec:
    words = text.lower().replace(",", " ").split()
    expected = _("two of {names}").format(names=", ".join(SKILLS))
    if len(words) != len(("infiniband", "ethernet")):
        raise _wrong("team", text, expected)
    for word in words:
        if word not in SKILLS:
            raise _wrong("team", word, expected, nearest(word[:64], list(SKILLS)))
    return {"team": {"infiniband": words[0], "ethernet": words[1]}}


def _amount(key: str, text: str, most: float, expected: str = "") -> float:
    try:
        amount = float(text.replace(",", "").replace("_", ""))
    except ValueError:
        amount = -1.0
    if not 0 < amount <= most:
        number = _("a number above 0, at most {most}").format(most=f"{most:,.12g}")
        raise _wrong(key, text, expected.format(number=number) if expected else number)
    return amount


def _aim(text: str, _known: KnownNames, _answers: Answers) -> Spec:
    aim, *rest = text.split()
    if aim.lower() not in AIMS or len(rest) > 1:
        expected = _("cost or stability, then an amount or nothing")
        raise _wrong("aim", text, expected, nearest(aim[:64].lower(), list(AIMS)))
    cost: Spec = {"decide_by": AIMS[aim.lower()]}
    if rest:
        cost["budget_usd"] = _amount("aim", rest[0], MOST_USD)
    return {"cost": cost}


def _subscription(text: str, _known: KnownNames, _answers: Answers) -> Spec:
    if text.lower() in ("yes", "no"):
        return {"offers": text.lower() == "yes"}
    fee = _amount("subscription", text, 1e6, _("yes, no, or {number}"))
    return {"offers": [{"name": "offer", "usd_per_port_month": fee}]}


def _value(text: str, known: KnownNames, answers: Answers) -> Spec:
    try:
        cost = _aim(_answer(questions()[5], answers), known, answers)["cost"]
    except InputError:
        cost = {}  # told with the question before
    if text.lower() == "market":
        return {"cost": cost}
    words = text.split()
    if len(words) > len(("usd", "years")):
        raise _wrong("value", text, _("two numbers, or market"))
    cost[GPU_HOUR] = _amount("value", words[0], 1e6, _("market, or {number}"))
    if len(words) > 1:
        years = _amount("value", words[1], MOST_YEARS)
        if years != int(years):
            expected = _("whole years, at most {most}").format(most=MOST_YEARS)
            raise _wrong("value", words[1], expected)
        cost["horizon_years"] = int(years)
    return {"cost": cost}
