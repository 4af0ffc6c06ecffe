// The marks of captured collectives (cuda/ranks/graph_marks.h) run beside them: nothing in a graph
// waits for a mark, and a mark of an end waits for its collective.

#include "gpu_rank.h"
#include "partita_rt/partita_rt_cuda.h"
#include "simulated/runtime.h"

#include <set>

namespace partita_rt::cuda {
namespace {

using simulated::Node, simulated::Nodes;

bool hasIn(const Node &node, const char *part) {
  return node.work->name.find(part) != std::string::npos;
}
bool isMark(const Node &node) { return hasIn(node, "markCollective"); }
/// The entry that completes a collective; "hand over ..." begins it.
bool isCollective(const Node &node) { return hasIn(node, ", rank ") && !hasIn(node, "hand over"); }

/// Fails unless there are `collectives` in the graph, each with two marks that nothing waits for.
void checkMarks(const Nodes &nodes, int collectives) {
  int found = 0, marks = 0;
  std::set<int> marked; ///< collectives that a mark waits for
  for (const Node &node : nodes) {
    found += isCollective(node);
    marks += isMark(node);
    for (int dependency : node.dependencies) {
      const Node &before = nodes[size_t(dependency)];
      if (!isMark(node) && isMark(before))
        fail("'%s' waits for a mark", node.work->name.c_str());
      if (isMark(node) && isCollective(before))
        marked.insert(dependency);
    }
  }
  if (found != collectives || marks != 2 * collectives || int(marked.size()) != collectives)
    fail("%d collectives, %zu of them marked, %d marks", found, marked.size(), marks);
}

TEST(GraphMarks, NothingWaitsForThem) {
  auto all = runGpus(freePort(), [](GpuRank &gpu) {
    float *data = deviceFloats(40);
    const Stream &stream = gpu.device.stream;
    Communicator &group = gpu.rank.group(0);
    auto work = [&](int at) { fill<float>(stream, data + at, 1.0f, 10); };
    cudaGraph_t graph = captureGraph(gpu, [&] {
      work(0);
      Pending first = allReduceStart(group, {{data, 10}}, "first");
      work(10);
      Pending second = allReduceStart(group, {{data + 10, 10}}, "second");
      work(20);
      wait(first);
      work(0);
      wait(second);
      work(10);
      shift(group, {{data, data + 30, 10}}, "third");
      work(30);
    });
    checkMarks(*graph->nodes, 3);
    cudaGraphDestroy(graph);
  });
  for (const Ended &each : all)
    EXPECT_EQ(each.code, 0) << each.text;
}

} // namespace
} // namespace partita_rt::cuda
