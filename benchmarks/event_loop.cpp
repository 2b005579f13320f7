// The thin event loop of lib/rankrouting/_events.py, line by line, in C++: what a researcher would
// otherwise write. Usage: event_loop n K upsilon c units p_1 … p_K
// Prints the number of steps, the seconds they took, and the total length at the end.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <vector>

struct Xoshiro {
    using result_type = uint64_t;
    uint64_t s[4];
    explicit Xoshiro(uint64_t seed) {
        std::mt19937_64 seeder(seed);
        for (auto& word : s) word = seeder();
    }
    static constexpr uint64_t min() { return 0; }
    static constexpr uint64_t max() { return ~uint64_t{0}; }
    static uint64_t rotl(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
    uint64_t operator()() {
        const uint64_t bits = rotl(s[0] + s[3], 23) + s[0], shifted = s[1] << 17;
        s[2] ^= s[0]; s[3] ^= s[1]; s[1] ^= s[2]; s[0] ^= s[3]; s[2] ^= shifted; s[3] = rotl(s[3], 45);
        return bits;
    }
};

static double unit(Xoshiro& rng) { return (rng() >> 11) * 0x1.0p-53; }

// The queue that a ranked job joins, ties broken uniformly.
static int ranked_queue(const std::vector<int64_t>& q, std::vector<int>& order, const std::vector<double>& cdf,
                        Xoshiro& rng) {
    const int K = static_cast<int>(q.size());
    int rank = 0;
    if (cdf[0] < 1.0)
        for (const double u = unit(rng); u >= cdf[rank];) ++rank;
    for (int i = 1; i < K; ++i) {
        const int queue = order[i];
        int j = i - 1;
        for (; j >= 0 && q[order[j]] > q[queue]; --j) order[j + 1] = order[j];
        order[j + 1] = queue;
    }
    const int64_t length = q[order[rank]];
    int first = rank, last = rank;
    while (first > 0 && q[order[first - 1]] == length) --first;
    while (last + 1 < K && q[order[last + 1]] == length) ++last;
    return order[first + static_cast<int>(unit(rng) * (last - first + 1))];
}

int main(int argc, char** argv) {
    if (argc < 7) return 2;
    const double n = std::atof(argv[1]), upsilon = std::atof(argv[3]), c = std::atof(argv[4]);
    const int K = std::atoi(argv[2]);
    const double units = std::atof(argv[5]), root = std::sqrt(n);
    std::vector<double> cdf(K);
    for (int k = 0; k < K; ++k) cdf[k] = std::atof(argv[6 + k]) + (k ? cdf[k - 1] : 0.0);
    cdf[K - 1] = 1.0;
    Xoshiro rng(1);
    std::vector<int64_t> q(K, static_cast<int64_t>(root));
    std::vector<int> order(K);
    std::iota(order.begin(), order.end(), 0);
    const double uniform = n - (upsilon + c) * root / K, ranked = c * root;
    const double total = K * (n + uniform) + ranked;
    const double scaled = uniform / (uniform + n) * 4294967296.0;
    const uint64_t up = static_cast<uint64_t>(scaled);
    const double up_fraction = scaled - static_cast<double>(up);
    const uint64_t queues = K, rejected = 4294967296ULL % queues, low_bits = 0xffffffffULL;
    const double hazard = -std::log1p(-ranked / total);

    const auto begin = std::chrono::steady_clock::now();
    const int64_t steps = static_cast<int64_t>(total * units);
    for (int64_t left = steps; left > 0;) {
        const double before = -std::log1p(-unit(rng)) / hazard;
        const int64_t run = before >= left ? left : static_cast<int64_t>(before);
        for (int64_t r = 0; r < run; ++r) {
            uint64_t bits = rng(), product = (bits >> 32) * queues;
            while ((product & low_bits) < rejected) bits = rng(), product = (bits >> 32) * queues;
            const uint64_t i = product >> 32;
            const uint64_t low = bits & low_bits;
            bool is_up = low < up;
            if (low == up) is_up = unit(rng) < up_fraction;
            const int64_t length = q[i];
            q[i] = is_up ? length + 1 : std::max<int64_t>(length - 1, 0);
        }
        left -= run;
        if (left > 0) {
            ++q[ranked_queue(q, order, cdf, rng)];
            --left;
        }
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::printf("%lld %.6f %lld\n", static_cast<long long>(steps), seconds,
                static_cast<long long>(std::accumulate(q.begin(), q.end(), int64_t{0})));
}
