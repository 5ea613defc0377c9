/* Queries of a bounding volume hierarchy over triangles: closest triangle, winding number. Internal.
 * The tree is built by src/geom/surface_tree.c. Its coordinates are relative to the centre of the surface and divided by a power of two, such that
 * all vertices have |x| <= 1. Inner nodes have up to eight children whose boxes are float, rounded outwards, and turned with the surface: far from a smooth
 * surface upright boxes of many more triangles reach nearer than the closest triangle. A leaf is a block of up to eight triangles in double. Unused places of a block repeat its last triangle.
 *
 * The closest triangle is the one of the smallest squared distance, ties by number, where the squared distance is the value of one expression in
 * double (surface_ref.c) with fused multiply-adds where written. Boxes only cut away what cannot be that triangle, by bounds that count rounding.
 * So every variant, order of queries and first bound gives the same bits, which are those of trying all triangles. */
#ifndef GRVI_KERNELS_SURFACE_KERNELS_H
#define GRVI_KERNELS_SURFACE_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/isa.h"

enum {
    GRVI_SURFACE_WIDTH = 8, /* children of a node, triangles of a block */
    GRVI_SURFACE_EMPTY =
        INT32_MIN, /* a child that is not there; its box is empty: lo = inf, hi = -inf */
    GRVI_SURFACE_MAX_DEPTH = 64, /* of inner nodes */
    GRVI_SURFACE_STACK = 8 * 64  /* places that a traversal needs */
};

/* child: number of a node if >= 0; else ~number of a block, or GRVI_SURFACE_EMPTY. Coordinate k in a child's frame is axis[k] . x; the axes are
 * orthonormal to the precision of float; [axis][component][child]. */
typedef struct grvi_surface_node {
    float axis[3][3][GRVI_SURFACE_WIDTH];
    float lo[3][GRVI_SURFACE_WIDTH], hi[3][GRVI_SURFACE_WIDTH];
    int32_t child[GRVI_SURFACE_WIDTH];
} grvi_surface_node;

/* Triangles in frames of their own: corner A at a, B = (bx, 0), C = (cx, cy) in the plane with axes u and v = normal x u. AB is the longest edge,
 * 0 <= cx <= bx; cy = 0 for a triangle that is thinner than 1e-7 of its length, which is thereby taken as its longest edge. */
typedef struct grvi_surface_block {
    double a[3][GRVI_SURFACE_WIDTH], u[3][GRVI_SURFACE_WIDTH], normal[3][GRVI_SURFACE_WIDTH];
    double bx[GRVI_SURFACE_WIDTH], cx[GRVI_SURFACE_WIDTH], cy[GRVI_SURFACE_WIDTH];
    double inv_ac[GRVI_SURFACE_WIDTH],
        inv_bc[GRVI_SURFACE_WIDTH]; /* 1 / squared length; 0 for none */
    int32_t triangle[GRVI_SURFACE_WIDTH];
    int32_t rotation[GRVI_SURFACE_WIDTH]; /* A is this corner of the triangle, B the next one */
    int64_t count;                        /* triangles, 1 .. 8 */
} grvi_surface_block;

/* What a node's children look like from afar (Barill et al., "Fast winding numbers for soups and clouds", 2018): sums over the triangles below of
 * N = int n dA, Q = sym int n (x-p), T = sym int n (x-p) (x-p) about the centre p, Q and T without their traces, which do not act.
 * Order of Q: xx yy zz xy xz yz; of T: xxx yyy zzz xxy xxz xyy yyz xzz yzz xyz, each with its multiplicity multiplied in, as are the factors of
 *   4 pi w = N.r/|r|^3 - 3 Q(r,r)/|r|^5 + 15/2 T(r,r,r)/|r|^7,  r = p - x. */
typedef struct grvi_surface_moments {
    float centre[3][GRVI_SURFACE_WIDTH],
        radius2[GRVI_SURFACE_WIDTH]; /* all triangles below lie within the radius */
    float first[3][GRVI_SURFACE_WIDTH], second[6][GRVI_SURFACE_WIDTH],
        third[10][GRVI_SURFACE_WIDTH];
} grvi_surface_moments;

/* Corners of a block's triangles [corner][axis][place]; unused places hold triangles without extent. */
typedef struct grvi_surface_corners {
    float x[3][3][GRVI_SURFACE_WIDTH];
} grvi_surface_corners;

typedef struct grvi_surface_tree {
    int64_t n_nodes, n_blocks;
    grvi_surface_node *nodes; /* the first is the root */
    grvi_surface_block *blocks;
    grvi_surface_moments *moments; /* [n_nodes], NULL without winding numbers */
    grvi_surface_corners *corners; /* [n_blocks], NULL without winding numbers */
    /* in the coordinates of the tree, for winding numbers in double: */
    const double *vertices;   /* [n_vertices][3] */
    const int32_t *triangles; /* [n_triangles][3] */
} grvi_surface_tree;

/* Result of a search. */
typedef struct grvi_surface_hit {
    double
        distance2; /* on entry: only triangles of at most this squared distance count, not NaN; on exit: the smallest, if one was found */
    int32_t triangle; /* -1: none */
    int32_t block, place;
} grvi_surface_hit;

typedef struct grvi_surface_kernels {
    const char *name;
    /* Closest triangle to x; |x| <= GRVI_SURFACE_REACH but for the reference, which takes any x up to 1e150.
     * hit->distance2 must be finite. The tree has at least one node. */
    void (*closest)(const grvi_surface_tree *tree, const double x[3], grvi_surface_hit *hit);
    /* Winding number at x. What is farther from its centre than `opening` times its radius is summed by moments, the rest triangle by triangle.
     * opening >= 1, or infinity: all triangle by triangle. The reference computes corners in double, the others in float. */
    double (*winding)(const grvi_surface_tree *tree, const double x[3], double opening);
} grvi_surface_kernels;

/* Where points are farther from the centre, float boxes no longer separate triangles: the reference, in double, is used. */
#define GRVI_SURFACE_REACH 256.0

/* Tables; NULL where the compiler or machine lacks the instruction set. AVX-512 takes the eight triangles of a block at once; floats have eight
 * lanes everywhere, as nodes have eight children. */
const grvi_surface_kernels *grvi_surface_kernels_for(grvi_isa isa);
const grvi_surface_kernels *grvi_surface_kernels_ref(void);
const grvi_surface_kernels *grvi_surface_kernels_avx2(void);
const grvi_surface_kernels *grvi_surface_kernels_avx512(void);

#endif
