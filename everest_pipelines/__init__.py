"""Everest pipelines: transcripts of coding agents become lessons that the next session reads."""

import os

# Sums must come out alike on every machine, and idle BLAS threads spin: one thread, decided before
# numpy is loaded by whatever comes first. Who sets the variables keeps the choice.
for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
