"""The paper, one file a step: coreset, seeding, E-step, M-step, bound, and the loop over them."""
