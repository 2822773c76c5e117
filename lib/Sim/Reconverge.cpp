// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In which order the lanes of a split warp run. Hardware lets them meet where the paths meet; here
// blocks have ranks, and the lanes at the lowest rank run. Ranks are a reverse postorder in which a
// loop comes before what follows it, so wherever lanes are, the place where their paths meet has a
// higher rank than every block on the way, and all of them get there first.
//
// That needs loops with one entry, which is what compilers write. In others lanes may fail to meet,
// which an instruction that needs them all reports.
#include "Program.h"

#include <algorithm>
#include <set>

using namespace attn::sim;

namespace {

class Graph {
public:
  explicit Graph(const std::vector<Instr> &code);
  std::vector<int32_t> ranks();

private:
  /// Postorder from the entry; `onBackEdge(from, to)` for edges to blocks that are being visited.
  template <class F>
  std::vector<int> postorder(F onBackEdge) const;
  void addLoop(int latch, int header);
  /// Loops that an edge leaves.
  size_t leaves(int from, int to) const;

  const std::vector<Instr> &code;
  std::vector<int> blockOf; ///< of an instruction
  std::vector<std::vector<int>> successors, predecessors;
  std::vector<std::set<int>> loops; ///< a block: headers of the loops it is in
};

Graph::Graph(const std::vector<Instr> &code) : code(code) {
  const size_t count = code.size();
  std::vector<bool> leader(count + 1);
  leader[0] = true;
  for (size_t i = 0; i < count; ++i)
    if (code[i].flow != Flow::Next) {
      leader[i + 1] = true;
      if (code[i].flow == Flow::Branch)
        leader[code[i].target] = true;
    }
  blockOf.resize(count);
  int block = -1;
  for (size_t i = 0; i < count; ++i)
    blockOf[i] = block += leader[i];
  successors.resize(block + 1);
  predecessors.resize(block + 1);
  loops.resize(block + 1);
  auto connect = [&](size_t from, size_t to) {
    if (to >= count)
      return;
    successors[blockOf[from]].push_back(blockOf[to]);
    predecessors[blockOf[to]].push_back(blockOf[from]);
  };
  for (size_t i = 0; i < count; ++i) {
    if (i + 1 < count && !leader[i + 1])
      continue;
    const Instr &in = code[i];
    if (in.flow == Flow::Branch)
      connect(i, in.target);
    if (in.flow == Flow::Next || in.guard != kNoOperand)
      connect(i, i + 1);
  }
}

template <class F>
std::vector<int> Graph::postorder(F onBackEdge) const {
  enum State : uint8_t { New, Open, Done };
  std::vector<State> state(successors.size(), New);
  std::vector<std::pair<int, size_t>> stack{{0, 0}};
  std::vector<int> order;
  state[0] = Open;
  while (!stack.empty()) {
    auto &[block, next] = stack.back();
    if (next == successors[block].size()) {
      state[block] = Done;
      order.push_back(block);
      stack.pop_back();
      continue;
    }
    const int to = successors[block][next++];
    if (state[to] == Open)
      onBackEdge(block, to);
    if (state[to] != New)
      continue;
    state[to] = Open;
    stack.emplace_back(to, 0);
  }
  return order;
}

/// Everything that reaches the latch without passing the header.
void Graph::addLoop(int latch, int header) {
  std::vector<int> work{latch};
  loops[header].insert(header);
  while (!work.empty()) {
    const int block = work.back();
    work.pop_back();
    if (!loops[block].insert(header).second)
      continue;
    work.insert(work.end(), predecessors[block].begin(), predecessors[block].end());
  }
}

size_t Graph::leaves(int from, int to) const {
  size_t count = 0;
  for (int header : loops[from])
    count += !loops[to].count(header);
  return count;
}

std::vector<int32_t> Graph::ranks() {
  std::vector<std::pair<int, int>> backEdges;
  postorder([&](int from, int to) { backEdges.emplace_back(from, to); });
  for (const auto &[latch, header] : backEdges)
    addLoop(latch, header);
  // What is visited first is finished first and so comes last.
  for (size_t block = 0; block < successors.size(); ++block)
    std::stable_sort(successors[block].begin(), successors[block].end(), [&](int a, int b) {
      return leaves(static_cast<int>(block), a) > leaves(static_cast<int>(block), b);
    });
  const std::vector<int> order = postorder([](int, int) {});
  std::vector<int32_t> rankOfBlock(successors.size(), 0);
  for (size_t i = 0; i < order.size(); ++i)
    rankOfBlock[order[i]] = static_cast<int32_t>(order.size() - i);
  // Instructions one after the other in the order of the blocks.
  std::vector<int32_t> byRank(code.size());
  for (size_t i = 0; i < code.size(); ++i)
    byRank[i] = static_cast<int32_t>(i);
  std::stable_sort(byRank.begin(), byRank.end(), [&](int32_t a, int32_t b) {
    return rankOfBlock[blockOf[a]] < rankOfBlock[blockOf[b]];
  });
  std::vector<int32_t> ranks(code.size());
  for (size_t i = 0; i < byRank.size(); ++i)
    ranks[byRank[i]] = static_cast<int32_t>(i);
  return ranks;
}

} // namespace

std::vector<int32_t> attn::sim::rankInstructions(const std::vector<Instr> &code) {
  return Graph(code).ranks();
}
