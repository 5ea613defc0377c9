// nanoflann's side of neighbours.py: float, the same files, as its expert user would run it. Prints one JSON object.
//   neighbours_nanoflann FOLDER K THREADS RADIUS LEAF
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <nanoflann.hpp>
#include <string>
#include <thread>
#include <vector>

struct Cloud {
    std::vector<float> x;
    size_t kdtree_get_point_count() const { return x.size() / 3; }
    float kdtree_get_pt(size_t i, size_t d) const { return x[3 * i + d]; }
    template <class Box> bool kdtree_get_bbox(Box &) const { return false; }
};
using Tree = nanoflann::KDTreeSingleIndexAdaptor<nanoflann::L2_Simple_Adaptor<float, Cloud>, Cloud, 3, uint32_t>;

static std::vector<float> read(const std::string &path)
{
    std::FILE *file = std::fopen(path.c_str(), "rb");
    if (!file) std::exit((std::perror(path.c_str()), 1));
    std::fseek(file, 0, SEEK_END);
    std::vector<float> values(std::ftell(file) / 4);
    std::rewind(file);
    if (std::fread(values.data(), 4, values.size(), file) != values.size()) std::exit(1);
    std::fclose(file);
    return values;
}

template <class T> static void write(const std::string &path, const std::vector<T> &values)
{
    std::FILE *file = std::fopen(path.c_str(), "wb");
    if (!file || std::fwrite(values.data(), sizeof(T), values.size(), file) != values.size() || std::fclose(file)) std::exit(1);
}

template <class F> static void timed(const char *name, F f)
{
    const auto start = std::chrono::steady_clock::now();
    const std::clock_t cpu_start = std::clock();
    f();
    std::printf("\"%s\": %.6f, ", name, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    std::printf("\"%s_cpu\": %.6f, ", name, double(std::clock() - cpu_start) / CLOCKS_PER_SEC);
}

template <class F> static void in_parallel(int n_threads, size_t n, F f)
{
    std::vector<std::thread> threads;
    for (int t = 1; t < n_threads; t++) threads.emplace_back([=] { f(t, n * t / n_threads, n * (t + 1) / n_threads); });
    f(0, 0, n / n_threads);
    for (auto &t : threads) t.join();
}

int main(int argc, char **argv)
{
    if (argc != 6) return 2;
    const std::string folder = argv[1];
    const size_t k = std::atoi(argv[2]);
    const int n_threads = std::atoi(argv[3]);
    const float radius = (float)std::atof(argv[4]);
    const Cloud cloud{read(folder + "/points.f32")};
    const std::vector<float> random = read(folder + "/queries.f32"), sorted = read(folder + "/queries_sorted.f32");
    const size_t m = random.size() / 3;
    std::vector<uint32_t> indices(m * k);
    std::vector<float> squared(m * k);
    std::vector<std::vector<std::pair<uint32_t, float>>> lists(n_threads); // all neighbours of a thread's queries
    std::vector<int32_t> counts(m);
    Tree *tree = nullptr;
    const auto nearest = [&](const std::vector<float> &queries) {
        in_parallel(n_threads, m, [&](int, size_t begin, size_t end) {
            for (size_t q = begin; q < end; q++) tree->knnSearch(&queries[3 * q], k, &indices[q * k], &squared[q * k]);
        });
    };
    std::printf("{");
    timed("build", [&] { tree = new Tree(3, cloud, nanoflann::KDTreeSingleIndexAdaptorParams(std::atoi(argv[5]))); });
    timed("sorted", [&] { nearest(sorted); });
    timed("random", [&] { nearest(random); });
    timed("radius", [&] {
        in_parallel(n_threads, m, [&](int t, size_t begin, size_t end) {
            std::vector<std::pair<uint32_t, float>> row;
            nanoflann::SearchParams params;
            params.sorted = false;
            for (size_t q = begin; q < end; q++) {
                tree->radiusSearch(&random[3 * q], radius * radius, row, params);
                counts[q] = int32_t(row.size());
                lists[t].insert(lists[t].end(), row.begin(), row.end());
            }
        });
    });
    write(folder + "/nearest_nanoflann.i32", indices);
    write(folder + "/within_nanoflann.i32", counts);
    std::printf("\"version\": \"nanoflann %#x\", \"tree_bytes\": %zu}\n", unsigned(NANOFLANN_VERSION), tree->usedMemory(*tree));
}
