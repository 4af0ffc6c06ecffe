// Block-sparse attention of the CPU's runtime beside dense attention: forward and backward on one core
// (bench/block_sparse runs it). Times are the least of all turns, in which the layouts alternate, in CPU
// time: other work on the machine only adds to them.

#include <partita_rt/partita_rt.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

using namespace partita_rt;

namespace {

double now() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

template <typename T> std::vector<T> random(int64_t n, const char *name) {
  std::vector<T> values(static_cast<size_t>(n));
  uint64_t key = randomKey(1, name);
  for (int64_t i = 0; i < n; ++i)
    values[size_t(i)] = T(float(standardNormal(key, uint64_t(i))));
  return values;
}

/// Of a forward pass, and of both passes together.
struct Seconds {
  double forward = 1e30, both = 1e30;
  void leastOf(const Seconds &other) {
    forward = std::min(forward, other.forward);
    both = std::min(both, other.both);
  }
};

/// Causal attention, batch 1; blocks: null for dense.
template <typename T> class Attention {
  int64_t sequence, heads, dim = 64, size = sequence * heads * dim;
  std::vector<T> q = random<T>(size, "q"), k = random<T>(size, "k"), v = random<T>(size, "v"),
                 dout = random<T>(size, "dout"), out = q, dq = q, dk = q, dv = q;
  std::vector<float> logSumExp, workspace;
  template <typename P> HeadsOf<P> of(P *data) { return {data, size, heads * dim, dim}; }
  HeadsOf<const T> in(const std::vector<T> &data) { return of(data.data()); }

public:
  Attention(int64_t sequence, int64_t heads)
      : sequence(sequence), heads(heads), logSumExp(size_t(heads * sequence)) {}
  /// Measures one forward and one backward pass.
  Seconds measure(const BlockLayout *layout) {
    AttentionShape shape{1, heads, sequence, sequence, dim, dim, 1, true, 0.125f};
    shape.blocks = {layout};
    workspace.resize(size_t(attentionWorkspace(shape, kDTypeOf<T>)));
    double start = now();
    attentionForward(of(out.data()), logSumExp.data(), in(q), in(k), in(v), shape);
    double between = now();
    attentionBackward(of(dq.data()), of(dk.data()), of(dv.data()), workspace.data(), in(dout),
                      in(out), logSumExp.data(), in(q), in(k), in(v), shape);
    return {between - start, now() - start};
  }
};

struct Case {
  std::string name;
  std::vector<BlockTerm> terms;
  BlockLayout layout;
  Seconds best;
  Case(const char *kind, int32_t size, int32_t n, std::vector<BlockTerm> all)
      : name(std::string(kind) + ", block " + std::to_string(size)), terms(std::move(all)),
        layout{size, n, true, int32_t(terms.size()), nullptr} {}
};

template <typename T> void compare(const char *type, int64_t sequence, int64_t heads, int turns) {
  std::vector<Case> cases;
  for (int32_t size : {16, 64}) {
    auto n = int32_t(sequence / size), window = 1024 / size;
    BlockTerm globals{BlockTermKind::Columns, 3, n, 4, 1, true};
    cases.emplace_back("fixed, 4 local blocks", size, n,
                       std::vector{BlockTerm{BlockTermKind::Squares, 0, n, 4}, globals});
    BlockTerm lasts{BlockTermKind::Columns, window - 1, n, window, 1, true};
    cases.emplace_back("fixed, windows of 1,024", size, n,
                       std::vector{BlockTerm{BlockTermKind::Squares, 0, n, window}, lasts});
    cases.emplace_back("sliding window of 1,024", size, n,
                       std::vector{BlockTerm{BlockTermKind::Band, 1 - window, 0}});
  }
  Attention<T> attention(sequence, heads);
  Seconds dense;
  for (int turn = 0; turn < turns; ++turn) {
    dense.leastOf(attention.measure(nullptr));
    for (Case &each : cases) {
      each.layout.terms = each.terms.data();
      each.best.leastOf(attention.measure(&each.layout));
    }
  }
  std::printf("%s, %lld positions, %lld heads of 64, causal: dense %.1f ms, forward %.1f ms\n",
              type, (long long)sequence, (long long)heads, dense.both * 1e3, dense.forward * 1e3);
  for (const Case &each : cases) {
    int64_t n = each.layout.n;
    double density = double(countBlocks(each.layout, true)) / (double(n) * double(n + 1) / 2);
    std::printf("  %-34s density %.4f  %8.1f ms, forward %8.1f ms  time / (density x dense) %.3f\n",
                each.name.c_str(), density, each.best.both * 1e3, each.best.forward * 1e3,
                each.best.both / (density * dense.both));
  }
}

} // namespace

int main(int argc, char **argv) {
  int turns = argc > 1 ? std::atoi(argv[1]) : 5;
  int64_t sequence = argc > 2 ? std::atoll(argv[2]) : 8192;
  compare<float>("float32", sequence, 2, turns);
  compare<BFloat16>("bfloat16", sequence, 2, turns);
}
