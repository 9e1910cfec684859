"""Where the runs of a sweep take place: processes here, or a Dask or Ray cluster of the user's."""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import joblib

from gpufabric.core.errors import DeviceError, Fault, InputError, nearest
from gpufabric.core.text import _

__all__ = ["BACKENDS", "check_workers", "workers"]

BACKENDS = ("local", "dask", "ray")
CONNECT_S = 30
"""How long a scheduler may take to answer [s]."""


def check_workers(backend: str, scheduler: str | None, jobs: int | None) -> None:
    """Raise if backend, scheduler and jobs do not go together.

    Raises
    ------
    InputError
        With all faults.
    """
    faults = []
    if backend not in BACKENDS:
        what = _('"{name}" is unknown.').format(name=backend[:64])
        faults.append(Fault("--backend", what, ", ".join(BACKENDS), nearest(backend, BACKENDS)))
    if backend == "local" and scheduler is not None:
        what = _("the local backend has no scheduler.")
        faults.append(Fault("--scheduler", what, "", _("Name --backend dask or ray.")))
    if backend == "dask" and scheduler is None:
        what = _("is missing.")
        faults.append(Fault("--scheduler", what, _("the cluster's address, tcp://HOST:PORT")))
    if jobs is not None and jobs < 1:
        what = _("{n} jobs.").format(n=jobs)
        faults.append(Fault("--jobs", what, _("1 or more")))
    if faults:
        raise InputError(faults)


@contextlib.contextmanager
def workers(backend: str, scheduler: str | None, jobs: int | None) -> Iterator[None]:
    """Make joblib run its work in the place chosen, inside the block.

    Parameters
    ----------
    backend
        One of ``BACKENDS``.
    scheduler
        Address of the cluster; for Ray, None takes the one of the environment, or starts one.
    jobs
        Runs at once; None: one for each core, or for each core of the cluster.

    Raises
    ------
    InputError
        If the library of the backend is not installed.
    DeviceError
        If the cluster cannot be reached.
    """
    if backend == "local":
        count = jobs or len(os.sched_getaffinity(0))
        with joblib.parallel_config(backend="loky", n_jobs=count):
            yield
    elif backend == "dask":
        with (
            _dask_client(str(scheduler)),
            joblib.parallel_config(backend="dask", n_jobs=jobs or -1),
        ):
            yield
    else:
        _start_ray(scheduler)
        with joblib.parallel_config(backend="ray", n_jobs=jobs or -1):
            yield


def _library(name: str, extra: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InputError(
            Fault(
                f"--backend {extra}",
                _("{name} is not installed.").format(name=name),
                remedy=_("Install gpufabric[{extra}].").format(extra=extra),
            )
        ) from error


def _dask_client(address: str) -> Any:
    distributed = _library("distributed", "dask")
    try:
        return distributed.Client(address, timeout=CONNECT_S, set_as_default=True)
    except (OSError, ValueError, TimeoutError) as error:
        raise _unreachable(address, error) from error


def _start_ray(address: str | None) -> None:
    ray = _library("ray", "ray")
    try:
        ray.init(address=address, ignore_reinit_error=True, log_to_driver=False)
    except (OSError, ValueError, RuntimeError) as error:
        raise _unreachable(address or "ray", error) from error
    _library("ray.util.joblib", "ray").register_ray()


def _unreachable(address: str, error: Exception) -> DeviceError:
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    return DeviceError(
        _("The cluster at {address} cannot be reached: {reason}").format(
            address=address, reason=reason[:300]
        )
    )
