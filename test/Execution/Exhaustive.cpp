// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every mask on every small batch: the dense mask that native code writes after all passes equals
// the hand-written predicate on every (q, k), and so do the evaluator, the row sets, the box
// classes, the tile records and the keys that the forward entry attends to.
//
//   attn-exhaustive PART [--shard I/N]
//
//   singles  each mask operation, plain and negated, named and written by hand, parameters as data
//            and as literals
//   pairs    each ordered pair of operations, each operand plain or negated, and / or
//   triples  each composition (a op b) op c, 200 seeded settings each
//   random   random expressions on larger batches with several requests and context
//
// The dense mask is compared on every request for every setting of the parameters. The slower
// judges walk the requests in chunks that rotate over settings and kernels.
#include "CaseSets.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace exec;
using namespace attn;
using masks::Atom;
using masks::Expr;
using masks::Int;
using masks::Needs;

namespace {

constexpr Int kMaxLen = 6;
constexpr size_t kChunkRequests = 16;
constexpr size_t kMaxChunks = 210;
constexpr size_t kMaxChunkSettings = 512;
constexpr size_t kModuleKernels = 64;

struct Shard {
  size_t index = 0;
  size_t count = 1;
};

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

/// Every set of at most two ranges with bounds up to kMaxLen; overlapping, touching, equal and cut
/// ones included, and both orders of a pair occur. Without `degenerate`, ranges that are not live
/// are left out: the binder drops them, so they give no new batch.
std::vector<std::vector<truth::Range>> rangeSets(Int seqLen, bool degenerate) {
  std::vector<truth::Range> ranges;
  for (Int s = 0; s <= kMaxLen; ++s)
    for (Int e = 0; e <= kMaxLen; ++e)
      if (degenerate || (s < e && s < seqLen))
        ranges.push_back({s, e});
  std::vector<std::vector<truth::Range>> sets = {{}};
  for (size_t i = 0; i < ranges.size(); ++i) {
    sets.push_back({ranges[i]});
    for (size_t j = i; j < ranges.size(); ++j)
      sets.push_back((i + j) % 2 ? std::vector<truth::Range>{ranges[i], ranges[j]}
                                 : std::vector<truth::Range>{ranges[j], ranges[i]});
  }
  return sets;
}

/// Every way to cut seqLen keys into consecutive documents, with ids in no order.
std::vector<std::vector<int>> documentCuts(Int seqLen) {
  static const int ids[] = {7, 3, 9, -4, 0, 5};
  std::vector<std::vector<int>> cuts;
  for (unsigned bits = 0; bits < (1u << std::max<Int>(seqLen - 1, 0)); ++bits) {
    std::vector<int> documents;
    int next = 0;
    for (Int k = 0; k < seqLen; ++k) {
      if (k && (bits >> (k - 1) & 1))
        ++next;
      documents.push_back(ids[next]);
    }
    cuts.push_back(documents);
  }
  return cuts;
}

std::vector<truth::Request> allRequests(Needs needs, bool degenerate) {
  std::vector<truth::Request> requests;
  for (Int q = 0; q <= kMaxLen; ++q)
    for (Int kv = 0; kv <= kMaxLen; ++kv) {
      truth::Request r = truth::request(q, kv);
      auto sets =
          needs.ranges ? rangeSets(kv, degenerate) : std::vector<std::vector<truth::Range>>{{}};
      auto cuts = needs.documents ? documentCuts(kv) : std::vector<std::vector<int>>{{}};
      for (const auto &set : sets)
        for (const auto &cut : cuts) {
          r.ranges = set;
          r.documents = cut;
          requests.push_back(r);
        }
    }
  return requests;
}

truth::Request randomRequest(Needs needs, Int maxQuery, Int maxSeq, std::mt19937 &rng) {
  truth::Request r = truth::request(rng() % (maxQuery + 1), rng() % (maxSeq + 1));
  if (needs.ranges)
    for (unsigned i = rng() % 5; i > 0 && r.seqLen > 0; --i) {
      Int start = rng() % (r.seqLen + 2);
      r.ranges.push_back({start, start + static_cast<Int>(rng() % (maxSeq / 2 + 1)) - 1});
    }
  int id = 0;
  if (needs.documents)
    for (Int k = 0; k < r.seqLen; ++k) {
      id += rng() % static_cast<unsigned>(2 + maxSeq / 6) == 0;
      r.documents.push_back(id);
    }
  // A request cut out of a longer one: its queries end before its keys do.
  if (rng() % 4 == 0 && r.contextLen > 0)
    r.contextLen = rng() % r.contextLen;
  return r;
}

/// The whole set of one kind of needs and its chunks.
struct Pool {
  std::unique_ptr<CaseSet> whole;
  std::vector<std::unique_ptr<CaseSet>> chunks;
  size_t nextChunk = 0;
};

Pool &poolFor(Needs needs, bool degenerate) {
  static Pool pools[8];
  Pool &pool = pools[needs.ranges + 2 * needs.documents + 4 * degenerate];
  if (pool.whole)
    return pool;
  std::vector<truth::Request> requests = allRequests(needs, degenerate);
  pool.whole = std::make_unique<CaseSet>(requests);
  // Chunks mix lengths: neighbours in the list are alike.
  std::mt19937 rng(17);
  std::shuffle(requests.begin(), requests.end(), rng);
  for (size_t i = 0; i < requests.size(); i += kChunkRequests)
    pool.chunks.push_back(std::make_unique<CaseSet>(std::vector<truth::Request>(
        requests.begin() + i, requests.begin() + std::min(i + kChunkRequests, requests.size()))));
  return pool;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

struct Job {
  Expr expr;
  masks::Style style = masks::Style::Named;
  bool hasLiterals = false;
  std::vector<Int> literals;
};

constexpr rt::TileShape kSmallShapes[] = {{1, 1}, {2, 3}, {4, 4}, {3, 2}, {6, 1}, {1, 6}};

/// Checks one kernel on every setting of its parameters; `thin` takes a part of the settings.
void checkAllSettings(const LoadedKernel &kernel, const Job &job, bool thin, Counts &counts) {
  Pool &pool = poolFor(job.expr.needs(), job.expr.nodes.size() == 1);
  Judge judge(kernel, job.expr, job.style == masks::Style::Named, job.hasLiterals, counts);
  std::vector<std::vector<Int>> all = {{}};
  for (Atom atom : job.expr.paramAtoms) {
    std::vector<std::vector<Int>> longer;
    for (const std::vector<Int> &head : all)
      for (const std::vector<Int> &tail : masks::settings(atom)) {
        longer.push_back(head);
        longer.back().insert(longer.back().end(), tail.begin(), tail.end());
      }
    all = std::move(longer);
  }
  if (job.hasLiterals)
    all = {job.literals};
  const size_t stride = thin ? std::max<size_t>(1, all.size() / 16) : 1;
  const size_t visits = (all.size() + stride - 1) / stride;
  const bool everyChunk = job.expr.nodes.size() == 1 && !job.hasLiterals;
  const size_t chunks = std::min(pool.chunks.size(), thin         ? 8
                                                     : everyChunk ? pool.chunks.size()
                                                                  : kMaxChunks);
  const size_t chunksEach = (chunks + visits - 1) / visits;
  // With thousands of settings the slower judges take every few of them.
  const size_t skip = (visits + kMaxChunkSettings - 1) / kMaxChunkSettings;
  size_t turn = 0;
  for (size_t i = 0; i < all.size(); i += stride) {
    judge.checkMask(*pool.whole, all[i]);
    if (i / stride % skip)
      continue;
    for (size_t c = 0; c < chunksEach; ++c, ++turn) {
      const rt::TileShape shape = kSmallShapes[turn % std::size(kSmallShapes)];
      pool.nextChunk = (pool.nextChunk + 1) % pool.chunks.size();
      judge.checkRest(*pool.chunks[pool.nextChunk], all[i], shape, turn % 7 == 0 ? 1 : 0);
    }
  }
}

std::vector<Int> randomParams(const Job &job, Int length, std::mt19937 &rng) {
  std::vector<Int> params;
  for (Atom atom : job.expr.paramAtoms)
    for (Int value : masks::randomSetting(atom, length, rng))
      params.push_back(value);
  return params;
}

/// Checks one kernel on 25 seeded settings of the parameters, each on 8 requests.
void checkSeeded(const LoadedKernel &kernel, const Job &job, std::mt19937 &rng, Counts &counts) {
  static std::map<int, std::vector<std::unique_ptr<CaseSet>>> pools;
  const Needs needs = job.expr.needs();
  std::vector<std::unique_ptr<CaseSet>> &pool = pools[needs.ranges + 2 * needs.documents];
  for (size_t i = pool.size(); i < 150; ++i) {
    std::vector<truth::Request> requests;
    for (int j = 0; j < 8; ++j)
      requests.push_back(randomRequest(needs, 7, 9, rng));
    pool.push_back(std::make_unique<CaseSet>(requests));
  }
  Judge judge(kernel, job.expr, job.style == masks::Style::Named, job.hasLiterals, counts);
  for (int i = 0; i < 25; ++i) {
    const std::vector<Int> params = randomParams(job, 9, rng);
    CaseSet &set = *pool[rng() % pool.size()];
    judge.checkMask(set, params);
    if (i % 5 == 0)
      judge.checkRest(set, params, kSmallShapes[rng() % std::size(kSmallShapes)], 0);
  }
}

/// Checks one kernel on larger batches.
void checkLarge(const LoadedKernel &kernel, const Job &job, std::mt19937 &rng, Counts &counts) {
  constexpr rt::TileShape shapes[] = {{16, 16}, {128, 80}, {7, 5}, {64, 32}};
  Judge judge(kernel, job.expr, job.style == masks::Style::Named, job.hasLiterals, counts);
  for (int i = 0; i < 5; ++i) {
    std::vector<truth::Request> requests;
    for (unsigned n = 2 + rng() % 3; n > 0; --n)
      requests.push_back(randomRequest(job.expr.needs(), 60, 140, rng));
    const std::vector<Int> params = job.hasLiterals ? job.literals : randomParams(job, 100, rng);
    CaseSet set(requests);
    judge.checkMask(set, params);
    judge.checkRest(set, params, shapes[rng() % std::size(shapes)], rng() % 9);
  }
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

std::vector<Job> singleJobs() {
  std::vector<Job> jobs;
  for (int a = 0; a < masks::kNumAtoms; ++a)
    for (int bits = 0; bits < 4; ++bits) {
      Job job;
      job.style = bits & 2 ? masks::Style::ByHand : masks::Style::Named;
      job.expr.leaf(static_cast<Atom>(a), bits & 1);
      jobs.push_back(job);
      if (masks::numParams(static_cast<Atom>(a)) == 0)
        continue;
      // Every literal of the named form, every third of the other.
      const std::vector<std::vector<Int>> &all = masks::settings(static_cast<Atom>(a));
      for (size_t i = 0; i < all.size(); i += bits & 2 ? 3 : 1) {
        job.hasLiterals = true;
        job.literals = all[i];
        jobs.push_back(job);
      }
    }
  return jobs;
}

std::vector<Job> pairJobs() {
  std::vector<Job> jobs;
  for (int a = 0; a < masks::kNumAtoms; ++a)
    for (int b = 0; b < masks::kNumAtoms; ++b)
      for (int bits = 0; bits < 8; ++bits) {
        Job job;
        int lhs = job.expr.leaf(static_cast<Atom>(a), bits & 1);
        int rhs = job.expr.leaf(static_cast<Atom>(b), bits & 2);
        job.expr.combine(bits & 4 ? masks::Node::Or : masks::Node::And, lhs, rhs, false);
        jobs.push_back(job);
      }
  return jobs;
}

/// The two connectives and the order of a and b do not matter, negations are drawn.
std::vector<Job> tripleJobs(std::mt19937 &rng) {
  std::vector<Job> jobs;
  for (int a = 0; a < masks::kNumAtoms; ++a)
    for (int b = a; b < masks::kNumAtoms; ++b)
      for (int c = 0; c < masks::kNumAtoms; ++c)
        for (int bits = 0; bits < 4; ++bits) {
          const unsigned flips = rng();
          auto kind = [&](int bit) { return bits & bit ? masks::Node::Or : masks::Node::And; };
          Job job;
          int first = job.expr.leaf(static_cast<Atom>(a), flips & 1);
          int second = job.expr.leaf(static_cast<Atom>(b), flips & 2);
          int inner = job.expr.combine(kind(1), first, second, (flips & 12) == 0);
          int third = job.expr.leaf(static_cast<Atom>(c), flips & 16);
          if (flips & 32)
            job.expr.combine(kind(2), inner, third, (flips & 192) == 0);
          else
            job.expr.combine(kind(2), third, inner, (flips & 192) == 0);
          job.style = (flips & 768) == 0 ? masks::Style::ByHand : masks::Style::Named;
          jobs.push_back(job);
        }
  return jobs;
}

std::vector<Job> randomJobs(std::mt19937 &rng) {
  std::vector<Job> jobs;
  for (int i = 0; i < 160; ++i) {
    Job job;
    std::vector<int> open;
    for (unsigned n = 2 + rng() % 5; n > 0; --n)
      open.push_back(job.expr.leaf(static_cast<Atom>(rng() % masks::kNumAtoms), rng() % 3 == 0));
    while (open.size() > 1) {
      std::shuffle(open.begin(), open.end(), rng);
      int lhs = open.back();
      open.pop_back();
      int rhs = open.back();
      open.back() = job.expr.combine(rng() % 2 ? masks::Node::Or : masks::Node::And, lhs, rhs,
                                     rng() % 5 == 0);
    }
    job.style = i % 4 == 1 ? masks::Style::ByHand : masks::Style::Named;
    if (i % 3 == 0) {
      job.hasLiterals = true;
      job.literals = randomParams(job, 100, rng);
    }
    jobs.push_back(job);
  }
  return jobs;
}

using CheckFn = void (*)(const LoadedKernel &, const Job &, bool thin, Counts &);

std::mt19937 &seeded() {
  static std::mt19937 rng(20240611);
  return rng;
}

/// Compiles `jobs` as one module and checks each kernel.
bool runModule(const std::vector<const Job *> &jobs, bool maskPasses, unsigned optLevel,
               CheckFn check, double &compileSeconds, Counts &counts) {
  std::string text;
  for (size_t i = 0; i < jobs.size(); ++i) {
    masks::KernelText kernel;
    kernel.name = "k" + std::to_string(i);
    kernel.style = jobs[i]->style;
    text +=
        masks::specText(jobs[i]->expr, kernel, jobs[i]->hasLiterals ? &jobs[i]->literals : nullptr);
  }
  auto start = std::chrono::steady_clock::now();
  std::string error;
  std::unique_ptr<LoadedSpec> loaded = compileAndLoad(text, maskPasses, optLevel, error);
  compileSeconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!loaded) {
    std::printf("FAILED to compile or load: %s\n", error.c_str());
    return false;
  }
  for (size_t i = 0; i < jobs.size(); ++i) {
    const LoadedKernel *kernel = loaded->find("k" + std::to_string(i));
    if (!kernel) {
      std::printf("FAILED: kernel k%zu is missing in the artifact\n", i);
      return false;
    }
    check(*kernel, *jobs[i], !maskPasses, counts);
  }
  return true;
}

int report(const std::string &part, const Counts &with, const Counts &without,
           double compileSeconds, double seconds) {
  for (const Counts *c : {&with, &without}) {
    std::printf("%s, %s mask passes: %lld kernels (%lld with exact tiles), %lld cases, "
                "%lld (q, k) pairs of native masks, %lld of the evaluator, %lld tiles "
                "(%lld visited, %lld full), %lld forward rows, %lld failures\n",
                part.c_str(), c == &with ? "all" : "no", static_cast<long long>(c->kernels),
                static_cast<long long>(c->exactKernels), static_cast<long long>(c->cases),
                static_cast<long long>(c->pairs), static_cast<long long>(c->evaluatorPairs),
                static_cast<long long>(c->tiles), static_cast<long long>(c->tilesVisited),
                static_cast<long long>(c->tilesFull), static_cast<long long>(c->probeRows),
                static_cast<long long>(c->failures));
  }
  std::printf("%.1f s, of them %.1f s compiling\n", seconds, compileSeconds);
  bool ran = with.pairs > 0 && with.evaluatorPairs > 0 && with.tiles > 0 && with.probeRows > 0;
  // One operation or two always fuse. More may need more runs than the compiler keeps apart.
  bool fused = part == "singles" || part == "pairs" ? with.intervalKernels == with.kernels
                                                    : with.intervalKernels * 10 > with.kernels * 9;
  if (!ran)
    std::printf("FAILED: nothing was compared\n");
  if (!fused)
    std::printf("FAILED: only %lld kernels are made of intervals after the mask passes\n",
                static_cast<long long>(with.intervalKernels));
  return ran && fused && with.failures == 0 && without.failures == 0 ? 0 : 1;
}

int runPart(const std::string &part, Shard shard) {
  auto start = std::chrono::steady_clock::now();
  std::vector<Job> jobs;
  CheckFn check = checkAllSettings;
  std::mt19937 rng(4711);
  if (part == "singles") {
    jobs = singleJobs();
  } else if (part == "pairs") {
    jobs = pairJobs();
  } else if (part == "triples") {
    jobs = tripleJobs(rng);
    check = [](const LoadedKernel &kernel, const Job &job, bool, Counts &counts) {
      checkSeeded(kernel, job, seeded(), counts);
    };
  } else if (part == "random") {
    jobs = randomJobs(rng);
    check = [](const LoadedKernel &kernel, const Job &job, bool, Counts &counts) {
      checkLarge(kernel, job, seeded(), counts);
    };
  } else {
    std::printf("unknown part '%s', expected singles, pairs, triples or random\n", part.c_str());
    return 2;
  }
  seeded().seed(static_cast<unsigned>(20240611 + shard.index));

  std::vector<const Job *> mine;
  for (size_t i = shard.index; i < jobs.size(); i += shard.count)
    mine.push_back(&jobs[i]);
  Counts with;
  Counts without;
  double compileSeconds = 0;
  // Thousands of small kernels: compiling costs more than running them.
  const unsigned optLevel = part == "random" ? 1 : 0;
  for (size_t i = 0; i < mine.size(); i += kModuleKernels) {
    std::vector<const Job *> module(mine.begin() + i,
                                    mine.begin() + std::min(i + kModuleKernels, mine.size()));
    if (!runModule(module, true, optLevel, check, compileSeconds, with))
      return 1;
    // A part of the kernels also as they come, without mask passes.
    std::vector<const Job *> plain;
    for (size_t j = i / kModuleKernels % 5; j < module.size(); j += 5)
      plain.push_back(module[j]);
    if (!plain.empty() && !runModule(plain, false, optLevel, check, compileSeconds, without))
      return 1;
  }
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report(part, with, without, compileSeconds, seconds);
}

} // namespace

int main(int argc, char **argv) {
  Shard shard;
  std::string part;
  for (int i = 1; i < argc; ++i) {
    std::string arg = argv[i];
    if (arg == "--shard" && i + 1 < argc) {
      if (std::sscanf(argv[++i], "%zu/%zu", &shard.index, &shard.count) != 2 || !shard.count ||
          shard.index >= shard.count) {
        std::printf("--shard takes I/N with I < N\n");
        return 2;
      }
    } else if (part.empty()) {
      part = arg;
    } else {
      std::printf("unexpected argument '%s'\n", arg.c_str());
      return 2;
    }
  }
  return runPart(part, shard);
}
