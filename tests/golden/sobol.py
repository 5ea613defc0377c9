"""Checksum of the first 4096 points of SciPy's Sobol sequence in 32 dimensions (not scrambled), for tests/data/sobol_impl_test.c.

usage: python3 sobol.py (needs SciPy)
"""
from scipy.stats import qmc

POINTS, DIMENSIONS = 4096, 32

hash_value = 0xCBF29CE484222325
for point in qmc.Sobol(DIMENSIONS, scramble=False, bits=32).random(POINTS):
    for coordinate in point:
        hash_value = ((hash_value ^ int(coordinate * 2**32)) * 0x100000001B3) % 2**64
print(f"{POINTS} points, {DIMENSIONS} dimensions: 0x{hash_value:016x}")
