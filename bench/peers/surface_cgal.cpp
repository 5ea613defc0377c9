// Distances to a triangle surface by CGAL's AABB tree, for surface.py: reads vertices.f32, triangles.i32 and points.f32 of a folder, writes cgal.f32.
// Needs libcgal-dev (header only: no GMP is used by this kernel); surface.py compiles it.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <CGAL/AABB_traits.h>
#include <CGAL/AABB_tree.h>
#include <CGAL/AABB_triangle_primitive.h>
#include <CGAL/Simple_cartesian.h>

using Kernel = CGAL::Simple_cartesian<double>;
using Point = Kernel::Point_3;
using Triangles = std::vector<Kernel::Triangle_3>;
using Tree = CGAL::AABB_tree<CGAL::AABB_traits<Kernel, CGAL::AABB_triangle_primitive<Kernel, Triangles::const_iterator>>>;

template <typename T> static std::vector<T> read(const std::string &path)
{
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    std::vector<T> values(static_cast<size_t>(file.tellg()) / sizeof(T));
    file.seekg(0);
    file.read(reinterpret_cast<char *>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
    return values;
}

static double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

int main(int argc, char **argv)
{
    if (argc != 3) return 2;
    const std::string folder = argv[1];
    const auto vertices = read<float>(folder + "/vertices.f32"), points = read<float>(folder + "/points.f32");
    const auto faces = read<int>(folder + "/triangles.i32");
    const auto corner = [&](size_t i) { return Point(vertices[3 * i], vertices[3 * i + 1], vertices[3 * i + 2]); };

    const double start = now();
    Triangles triangles;
    for (size_t t = 0; t < faces.size(); t += 3) triangles.emplace_back(corner(faces[t]), corner(faces[t + 1]), corner(faces[t + 2]));
    Tree tree(triangles.begin(), triangles.end());
    tree.build();
    tree.accelerate_distance_queries(); // its own hints: a kd-tree of points
    const double build = now() - start;

    const long n = static_cast<long>(points.size() / 3);
    std::vector<float> distance(n);
    const double begin = now();
#pragma omp parallel for schedule(dynamic, 1024) num_threads(std::atoi(argv[2]))
    for (long i = 0; i < n; i++)
        distance[i] = static_cast<float>(std::sqrt(tree.squared_distance(Point(points[3 * i], points[3 * i + 1], points[3 * i + 2]))));
    const double seconds = now() - begin;
    std::ofstream(folder + "/cgal.f32", std::ios::binary).write(reinterpret_cast<const char *>(distance.data()), 4 * n);
    std::printf("{\"version\": \"CGAL %s\", \"build\": %g, \"distance\": %g}\n", CGAL_STR(CGAL_VERSION), build, seconds);
}
