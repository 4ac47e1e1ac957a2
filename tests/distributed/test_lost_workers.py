"""A worker that is killed in the middle of a fit costs time, not the result."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import dask.array as da
import numpy as np
from distributed import Client

from vcgmm import VCGMM, Iteration
from vcgmm.distributed import DaskVCGMM


class Killer:
    """A callback that kills a worker, really, after an iteration."""

    def __init__(self, client: Client, iteration: int) -> None:
        self.client = client
        self.iteration = iteration
        self.killed: list[int] = []

    def __call__(self, facts: Iteration) -> None:
        if facts.iteration == self.iteration:
            victim = min(self.client.run(os.getpid).values())
            os.kill(victim, signal.SIGKILL)
            self.killed.append(victim)


def test_killed_in_the_middle_of_em(mortal_client: Client, X: np.ndarray) -> None:
    lazy = da.from_array(X, chunks=(1000, 5))
    settings = {"n_components": 30, "random_state": 0, "em": "distributed", "client": mortal_client, "tol": 1e-9}
    undisturbed = DaskVCGMM(**settings).fit(lazy)
    assert undisturbed.n_iter_ > 6
    killer = Killer(mortal_client, 4)
    model = DaskVCGMM(callbacks=killer, **settings).fit(lazy)
    assert len(killer.killed) == 1
    assert killer.killed[0] not in mortal_client.run(os.getpid).values()
    # Not only close: lost winners are computed again from the same numbers.
    assert (model.lower_bounds_ == undisturbed.lower_bounds_).all()
    assert (model.means_ == undisturbed.means_).all()
    assert model.variance_ == undisturbed.variance_


def _die_once(block: np.ndarray, marker: str) -> np.ndarray:
    """Kill the process that works on this, the first time."""
    try:
        Path(marker).touch(exist_ok=False)
    except FileExistsError:
        return block
    os.kill(os.getpid(), signal.SIGKILL)
    return block


def test_killed_while_it_reads_the_data(mortal_client: Client, X: np.ndarray, tmp_path: Path) -> None:
    marker = tmp_path / "died"
    lazy = da.from_array(X, chunks=(1000, 5)).map_blocks(_die_once, str(marker), dtype=X.dtype, meta=X[:0])
    settings = {"n_components": 20, "random_state": 0, "coreset_size": 3000}
    model = DaskVCGMM(client=mortal_client, **settings).fit(lazy)
    assert marker.exists()
    local = VCGMM(**settings).fit(X)
    assert (model.coreset_.indices == local.coreset_.indices).all()
    assert np.abs(model.means_ - local.means_).max() < 1e-8
