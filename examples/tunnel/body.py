#!/usr/bin/env python3
"""Writes body.stl: a bluff body with a rounded nose and a slanted back (in the manner of Ahmed's), 1.04 long, x along the flow, y up."""
import math

LENGTH, HEIGHT, WIDTH, NOSE, SLANT = 1.04, 0.29, 0.39, 0.1, 0.2

# the side, counter-clockwise, convex: floor, back, slant, roof, two quarter circles down the nose
side = [(NOSE, 0), (LENGTH, 0), (LENGTH, HEIGHT - SLANT * math.tan(math.radians(25))), (LENGTH - SLANT, HEIGHT)]
for first, y in ((90, HEIGHT - NOSE), (180, NOSE)):
    side += [(NOSE + NOSE * math.cos(math.radians(first + 15 * k)), y + NOSE * math.sin(math.radians(first + 15 * k))) for k in range(6 + (first == 90))]

left, right = ([(x, y, z) for x, y in side] for z in (0, WIDTH))
n = len(side)
facets = [(right[0], right[i], right[i + 1]) for i in range(1, n - 1)] + [(left[0], left[i + 1], left[i]) for i in range(1, n - 1)]
for i in range(n):
    j = (i + 1) % n
    facets += [(left[i], left[j], right[j]), (left[i], right[j], right[i])]

with open("body.stl", "w", encoding="ascii") as file:
    file.write("solid body\n")
    for facet in facets:
        points = "".join("vertex %.9g %.9g %.9g\n" % point for point in facet)
        file.write(f"facet normal 0 0 0\nouter loop\n{points}endloop\nendfacet\n")
    file.write("endsolid body\n")
