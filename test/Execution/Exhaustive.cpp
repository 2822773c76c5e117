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
//   triples  each composition (a op b) op c, 200 seeded settings each: parameters and a request
//   random   random expressions on larger batches with several requests and context
//
// Every case, which is a kernel, a setting of its parameters and a request, has its dense mask
// compared and its tile classes judged after all mask passes. In pairs the tile records of a kernel
// are built once for each tiling, lengths and mask that occur together. Evaluator and forward entry
// walk the requests in chunks that rotate over settings and kernels.
//
// Ranges that are not live are cases of their own in singles. In pairs the tables of a request with
// such ranges are shown to be, byte for byte, those of the request without them, which is a case.
#include "CaseSets.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>

using namespace exec;
using namespace attn;
using namespace attn::core;
using masks::Atom;
using masks::Expr;
using masks::Int;
using masks::kMaxLen;
using masks::Needs;

namespace {

constexpr size_t kChunkRequests = 16;
constexpr size_t kMaxChunks = 96;
constexpr size_t kMaxChunkSettings = 512;
constexpr size_t kModuleKernels = 64;
constexpr size_t kSeededSettings = 200;
constexpr unsigned kPlacements = 32;

struct Shard {
  size_t index = 0;
  size_t count = 1;
};

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

std::vector<truth::Request> allRequests(Needs needs, bool degenerate) {
  std::vector<truth::Request> requests;
  for (Int q = 0; q <= kMaxLen; ++q)
    for (Int kv = 0; kv <= kMaxLen; ++kv)
      masks::addRequests(needs, degenerate, q, kv, requests);
  return requests;
}

/// Binds every request that has ranges which are not live, and the same requests without those
/// ranges; the tables must not differ. Returns how many there are, or -1 after a failure.
int64_t checkDegenerate(const KernelSpec &spec, Needs needs) {
  static std::map<std::string, int64_t> done;
  const auto [entry, isNew] = done.try_emplace(tableSignature(spec.program.tables), 0);
  int64_t &count = entry->second;
  for (Int i = 0; isNew && needs.ranges && i < (kMaxLen + 1) * (kMaxLen + 1); ++i) {
    const Int q = i / (kMaxLen + 1);
    const Int kv = i % (kMaxLen + 1);
    std::vector<truth::Request> all;
    std::vector<truth::Request> with;
    std::vector<truth::Request> without;
    masks::addRequests(needs, true, q, kv, all);
    for (truth::Request &r : all) {
      auto dead = [&](const truth::Range &range) { return !truth::live(r, range); };
      if (std::none_of(r.ranges.begin(), r.ranges.end(), dead))
        continue;
      with.push_back(r);
      r.ranges.erase(std::remove_if(r.ranges.begin(), r.ranges.end(), dead), r.ranges.end());
      without.push_back(std::move(r));
    }
    std::string error;
    std::optional<Batch> a = bindRequests(spec, with, error);
    std::optional<Batch> b = bindRequests(spec, without, error);
    if (!a || !b || !sameTables(*a, *b)) {
      std::printf("FAILED: query_len %lld seq_len %lld: ranges that are not live change the tables "
                  "of '%s' %s\n",
                  q, kv, spec.name.c_str(), error.c_str());
      count = -1;
      return count;
    }
    count += static_cast<int64_t>(with.size());
  }
  return count;
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
  unsigned composition = 0; ///< number of the composition and which part of its settings
  size_t firstSetting = 0;
};

constexpr rt::TileShape kSmallShapes[] = {{1, 1}, {2, 3}, {4, 4}, {3, 2}, {6, 1}, {1, 6}};

std::vector<std::vector<Int>> allSettings(const Job &job) {
  if (job.hasLiterals)
    return {job.literals};
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
  return all;
}

/// Checks one kernel on every setting of its parameters; `thin` takes a part of the settings and
/// judges tiles on the chunks only.
void checkAllSettings(const LoadedKernel &kernel, const Job &job, bool thin, Counts &counts) {
  static std::mt19937 rng(99);
  const bool single = job.expr.nodes.size() == 1;
  Pool &pool = poolFor(job.expr.needs(), single);
  Judge judge(kernel, job.expr, job.style == masks::Style::Named, job.hasLiterals, counts);
  std::vector<std::vector<Int>> all = allSettings(job);
  // Of the settings with equal masks, any may come first and be the one whose tiles are built.
  std::shuffle(all.begin(), all.end(), rng);
  const size_t stride = thin ? std::max<size_t>(1, all.size() / 16) : 1;
  const size_t visits = (all.size() + stride - 1) / stride;
  const size_t chunks =
      std::min(pool.chunks.size(), thin                         ? 8
                                   : single && !job.hasLiterals ? pool.chunks.size()
                                                                : kMaxChunks);
  const size_t chunksEach = (chunks + visits - 1) / visits;
  // With thousands of settings the slower judges take every few of them.
  const size_t skip = (visits + kMaxChunkSettings - 1) / kMaxChunkSettings;
  // A kernel with few settings gets several tilings of each.
  const size_t tilings =
      job.hasLiterals ? 1 : (std::size(kSmallShapes) + all.size() - 1) / all.size();
  size_t turn = rng() % 64;
  for (size_t i = 0; i < all.size(); i += stride) {
    if (!judge.start(*pool.whole, all[i]))
      return;
    judge.checkMask();
    rt::TileShape shape = {};
    int64_t anchor = 0;
    for (size_t n = 0; n < tilings; ++n) {
      shape = kSmallShapes[turn % std::size(kSmallShapes)];
      anchor = turn++ % 7 == 0 ? 1 : 0;
      if (!thin && single)
        judge.checkTiles(shape, anchor);
      else if (!thin)
        judge.checkNewTiles(shape, anchor);
    }
    for (size_t c = 0; i / stride % skip == 0 && c < chunksEach; ++c) {
      pool.nextChunk = (pool.nextChunk + 1) % pool.chunks.size();
      if (!judge.start(*pool.chunks[pool.nextChunk], all[i]))
        return;
      judge.checkEvaluator(shape);
      judge.checkForward();
      if (thin)
        judge.checkTiles(shape, anchor);
    }
  }
  if (single || thin)
    return;
  const int64_t degenerate = checkDegenerate(*kernel.spec, job.expr.needs());
  counts.failures += degenerate < 0;
  counts.degenerate += degenerate * static_cast<int64_t>(all.size());
}

std::vector<Int> randomParams(const Job &job, Int length, std::mt19937 &rng) {
  std::vector<Int> params;
  for (Atom atom : job.expr.paramAtoms)
    for (Int value : masks::randomSetting(atom, length, rng))
      params.push_back(value);
  return params;
}

struct Setting {
  truth::Request request;
  std::vector<Int> params;
};

/// The settings of a composition, no two of them equal.
std::vector<Setting> seededSettings(const Job &job) {
  std::mt19937 rng(20240611 + job.composition);
  std::vector<Setting> settings;
  std::set<std::vector<Int>> known;
  while (settings.size() < kSeededSettings) {
    Setting s;
    s.request = masks::randomRequest(job.expr.needs(), 9, 12, rng);
    s.params = randomParams(job, 12, rng);
    std::vector<Int> key = s.params;
    key.insert(key.end(), {s.request.queryLen, s.request.seqLen, s.request.contextLen});
    key.insert(key.end(), s.request.documents.begin(), s.request.documents.end());
    for (const truth::Range &range : s.request.ranges)
      key.insert(key.end(), {range.start, range.end});
    if (known.insert(std::move(key)).second)
      settings.push_back(std::move(s));
  }
  return settings;
}

/// Checks one kernel of a composition on its half of the settings, each a batch of its own.
void checkSeeded(const LoadedKernel &kernel, const Job &job, bool, Counts &counts) {
  const std::vector<Setting> settings = seededSettings(job);
  Judge judge(kernel, job.expr, job.style == masks::Style::Named, job.hasLiterals, counts);
  for (size_t i = job.firstSetting; i < job.firstSetting + kSeededSettings / 2; ++i) {
    CaseSet set({settings[i].request});
    if (!judge.start(set, settings[i].params))
      return;
    const rt::TileShape shape = kSmallShapes[(i + job.composition) % std::size(kSmallShapes)];
    judge.checkMask();
    judge.checkTiles(shape, i % 7 == 0 ? 1 : 0);
    if (i % 5 != 0)
      continue;
    judge.checkEvaluator(shape);
    judge.checkForward();
  }
}

/// Checks one kernel on larger batches.
void checkLarge(const LoadedKernel &kernel, const Job &job, bool, Counts &counts) {
  std::mt19937 rng(20240611 + job.composition);
  constexpr rt::TileShape shapes[] = {{16, 16}, {128, 80}, {7, 5}, {64, 32}};
  Judge judge(kernel, job.expr, job.style == masks::Style::Named, job.hasLiterals, counts);
  for (int i = 0; i < 5; ++i) {
    std::vector<truth::Request> requests;
    for (unsigned n = 2 + rng() % 3; n > 0; --n)
      requests.push_back(masks::randomRequest(job.expr.needs(), 60, 140, rng));
    const std::vector<Int> params = job.hasLiterals ? job.literals : randomParams(job, 100, rng);
    CaseSet set(requests);
    if (!judge.start(set, params))
      return;
    const rt::TileShape shape = shapes[rng() % std::size(shapes)];
    judge.checkMask();
    judge.checkTiles(shape, rng() % 9);
    judge.checkEvaluator(shape);
    judge.checkForward();
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

/// The composition of a, b and c whose results are negated by the bits of `placement`.
Job tripleJob(int a, int b, int c, int connectives, unsigned placement, unsigned draw) {
  auto kind = [&](int bit) { return connectives & bit ? masks::Node::Or : masks::Node::And; };
  Job job;
  int first = job.expr.leaf(static_cast<Atom>(a), placement & 1);
  int second = job.expr.leaf(static_cast<Atom>(b), placement & 2);
  int inner = job.expr.combine(kind(1), first, second, placement & 4);
  int third = job.expr.leaf(static_cast<Atom>(c), placement & 8);
  if (draw & 1)
    std::swap(inner, third);
  job.expr.combine(kind(2), inner, third, placement & 16);
  job.style = draw & 6 ? masks::Style::Named : masks::Style::ByHand;
  return job;
}

/// The order of operands is drawn. There are 32 placements of not: on a, b, c, (a op b) and the
/// whole. A composition is taken with two that complement each other, so each of the five occurs
/// plain and negated in it; which two rotates such that any two operations at any two places, and
/// any two connectives, meet all 32.
std::vector<Job> tripleJobs(std::mt19937 &rng) {
  std::vector<Job> jobs;
  unsigned composition = 0;
  for (int a = 0; a < masks::kNumAtoms; ++a)
    for (int b = a; b < masks::kNumAtoms; ++b)
      for (int c = 0; c < masks::kNumAtoms; ++c)
        for (int bits = 0; bits < 4; ++bits, ++composition) {
          const unsigned sum = a + b + c;
          const unsigned placement = sum % 4 * 4 + (bits + sum / 4) % 4;
          for (unsigned half = 0; half < 2; ++half) {
            jobs.push_back(
                tripleJob(a, b, c, bits, half ? placement ^ (kPlacements - 1) : placement, rng()));
            jobs.back().composition = composition;
            jobs.back().firstSetting = half * kSeededSettings / 2;
          }
        }
  return jobs;
}

/// Counts the placements of not in `jobs` and what they meet; false if something is missing.
bool reportPlacements(const std::vector<Job> &jobs) {
  std::set<unsigned> placements;
  std::set<std::array<unsigned, 3>> connectives;
  std::set<std::array<unsigned, 3>> inner;
  std::set<std::array<unsigned, 3>> outer;
  for (const Job &job : jobs) {
    const std::vector<masks::Node> &n = job.expr.nodes;
    const unsigned placement = n[0].negated | n[1].negated << 1 | n[2].negated << 2 |
                               n[3].negated << 3 | n[4].negated << 4;
    auto atom = [&](int i) { return static_cast<unsigned>(n[i].atom); };
    placements.insert(placement);
    connectives.insert({n[2].kind, n[4].kind, placement});
    inner.insert({atom(0), atom(1), placement});
    for (int i : {0, 1})
      outer.insert({atom(i), atom(3), placement});
  }
  const size_t n = masks::kNumAtoms;
  std::printf("%zu compositions, %zu placements of not, %zu of them with two connectives, %zu with "
              "two inner operations, %zu with an inner and the outer one\n",
              jobs.size() / 2, placements.size(), connectives.size(), inner.size(), outer.size());
  return placements.size() == kPlacements && connectives.size() == 4 * kPlacements &&
         inner.size() == n * (n + 1) / 2 * kPlacements && outer.size() == n * n * kPlacements;
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
    job.composition = static_cast<unsigned>(i);
    jobs.push_back(job);
  }
  return jobs;
}

using CheckFn = void (*)(const LoadedKernel &, const Job &, bool thin, Counts &);

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
  auto ll = [](int64_t n) { return static_cast<long long>(n); };
  for (const Counts *c : {&with, &without}) {
    std::printf("%s, %s mask passes: %lld kernels (%lld with exact tiles)\n", part.c_str(),
                c == &with ? "all" : "no", ll(c->kernels), ll(c->exactKernels));
    std::printf("  %lld cases, %lld (q, k) pairs of native masks\n", ll(c->cases), ll(c->pairs));
    if (c->degenerate)
      std::printf(
          "  %lld more cases with ranges that are not live, tables equal to those without\n",
          ll(c->degenerate));
    std::printf("  tile classes of %lld cases: records of %lld requests, %lld tiles (%lld visited, "
                "%lld full)\n",
                ll(c->tileCases), ll(c->tileBuilds), ll(c->tiles), ll(c->tilesVisited),
                ll(c->tilesFull));
    std::printf("  %lld (q, k) pairs of the evaluator, %lld forward rows, %lld failures\n",
                ll(c->evaluatorPairs), ll(c->probeRows), ll(c->failures));
  }
  std::printf("%.1f s, of them %.1f s compiling\n", seconds, compileSeconds);
  bool ran = with.pairs > 0 && with.evaluatorPairs > 0 && with.tiles > 0 && with.probeRows > 0;
  // Every case has its mask compared and its tile classes judged.
  bool judged = with.tileCases == with.cases && (part != "pairs" || with.degenerate > 0);
  // One operation or two always fuse. More may need more runs than the compiler keeps apart.
  bool fused = part == "singles" || part == "pairs" ? with.intervalKernels == with.kernels
                                                    : with.intervalKernels * 10 > with.kernels * 9;
  if (!ran)
    std::printf("FAILED: nothing was compared\n");
  if (!judged)
    std::printf("FAILED: tile classes of %lld cases of %lld were judged\n", ll(with.tileCases),
                ll(with.cases));
  if (!fused)
    std::printf("FAILED: only %lld kernels are made of intervals after the mask passes\n",
                static_cast<long long>(with.intervalKernels));
  return ran && judged && fused && with.failures == 0 && without.failures == 0 ? 0 : 1;
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
    check = checkSeeded;
    if (!reportPlacements(jobs)) {
      std::printf("FAILED: a placement of not is missing\n");
      return 1;
    }
  } else if (part == "random") {
    jobs = randomJobs(rng);
    check = checkLarge;
  } else {
    std::printf("unknown part '%s', expected singles, pairs, triples or random\n", part.c_str());
    return 2;
  }

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
    const size_t every = part == "triples" ? 10 : 5;
    for (size_t j = i / kModuleKernels % every; j < module.size(); j += every)
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
