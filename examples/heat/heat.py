"""Heat spreads from a warm spot in a cold plate: a simulator in plain Python, as an example for `grove generate`.

usage: heat.py X Y DIFFUSIVITY      place of the spot (0 to 1), cells^2 per step (below 0.25)
Leaves input.raw, the temperature at the start, and target.raw, after 50 steps: float32 [x][y], y the fastest.
With NumPy, numpy.save("input.npy", a.astype("float32")) does the same.
"""
import array
import math
import sys

N, STEPS = 16, 50


def save(name, field):
    with open(name, "wb") as file:
        array.array("f", [value for row in field for value in row]).tofile(file)


def step(u, diffusivity):
    """One step of the five-point stencil; no heat leaves the plate."""
    def at(i, j):
        return u[min(max(i, 0), N - 1)][min(max(j, 0), N - 1)]

    return [[at(i, j) + diffusivity * (at(i - 1, j) + at(i + 1, j) + at(i, j - 1) + at(i, j + 1) - 4 * at(i, j)) for j in range(N)] for i in range(N)]


def main():
    x, y, diffusivity = (float(word) for word in sys.argv[1:])
    if diffusivity > 0.25:
        sys.exit(f"diffusivity {diffusivity} is too large for this step")
    u = [[math.exp(-((i / N - x) ** 2 + (j / N - y) ** 2) / 0.01) for j in range(N)] for i in range(N)]
    save("input.raw", u)
    for _ in range(STEPS):
        u = step(u, diffusivity)
    save("target.raw", u)


main()
