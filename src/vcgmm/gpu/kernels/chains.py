"""The Markov chains of AFK-MC^2, one after the other, a batch in one launch."""

from __future__ import annotations

import triton
import triton.language as tl

from .launching import launched


@launched
@triton.jit
def walk_chains(
    table,
    pitch,
    potential,
    distances,
    uniforms,
    n_chains,
    length,
    chosen,
    PROPOSALS: tl.constexpr,
):
    """As `run_chains` of the CPU, by a table of the distances between all proposals: one program.

    Parameters
    ----------
    table : (b * m, pitch) float32, IN, squared distances between the points proposed
    potential : (b * m,) float64, IN, gamma_n / q_n of the proposals
    distances : (b * m,) float64, IN/OUT, squared distance to the nearest centre so far
    uniforms : (b * m,) float64, IN
    n_chains, length : int, IN, b and m
    chosen : (b,) int64, OUT, the proposals that became centres; -1 where every state of the chain was one already
    PROPOSALS : constexpr, proposals of later chains that are looked at at a time
    """
    for chain in range(n_chains):
        begin = chain * length
        state = begin
        state_distance = tl.load(distances + begin)
        state_mass = tl.load(potential + begin) * state_distance
        for proposal in range(begin + 1, begin + length):
            distance = tl.load(distances + proposal)
            mass = tl.load(potential + proposal) * distance
            accepted = (state_distance == 0.0) | (tl.load(uniforms + proposal) * state_mass < mass)
            state = tl.where(accepted, proposal, state)
            state_distance = tl.where(accepted, distance, state_distance)
            state_mass = tl.where(accepted, mass, state_mass)
        is_new = state_distance > 0.0
        tl.store(chosen + chain, tl.where(is_new, state, -1).to(tl.int64))
        if is_new:
            row = table + state.to(tl.int64) * pitch
            for first in range(begin + length, n_chains * length, PROPOSALS):
                later = first + tl.arange(0, PROPOSALS)
                inside = later < n_chains * length
                near = tl.load(distances + later, mask=inside, other=0.0)
                new = tl.load(row + later, mask=inside, other=0.0).to(tl.float64)
                tl.store(distances + later, tl.minimum(near, new), mask=inside)
        tl.debug_barrier()  # what some threads have written, all others read next
