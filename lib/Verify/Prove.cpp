// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The order of questions:
//   1. without a solver: the same program, or the same term, is equal;
//   2. can the rules of a batch hold at all? If not, anything would be proved;
//   3. can the masks differ, for any number of ranges? If not: proved. Before that is said, random
//      batches have a say, as a solver may lie. One process answers this and the one before;
//   4. if so, for at most three ranges and in boxes that grow, for an example that is small;
//   5. the evaluator has the last word on an example.
#include "attn/Verify/Prove.h"

#include "Encoder.h"
#include "Scene.h"
#include "Solver.h"

#include "attn/Core/MaskEval.h"
#include "attn/Core/MaskProgramEmit.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

#include <functional>

using namespace attn;
using namespace attn::proofs;

static constexpr unsigned kExampleRanges = 3;
static constexpr int kRandomBatches = 40;
/// Operations that the evaluator runs, at most, for one question to it.
static constexpr double kMaxEvaluated = 5e7;

const char *proofs::toString(Outcome outcome) {
  switch (outcome) {
  case Outcome::Proved:
    return "proved";
  case Outcome::Refuted:
    return "refuted";
  case Outcome::Unknown:
    return "unknown";
  case Outcome::NotChecked:
    return "not checked";
  }
  return "";
}

std::string proofs::toString(const Counterexample &at) {
  auto said = [](bool keep) { return keep ? "keeps" : "drops"; };
  return "at b = " + std::to_string(at.b) + ", h = " + std::to_string(at.h) +
         ", q = " + std::to_string(at.q) + ", k = " + std::to_string(at.k) + " the first " +
         said(at.before) + " and the second " + said(at.after) + " the element";
}

std::vector<std::pair<std::string, bool>> proofs::batchNotes(const Counterexample &at) {
  auto note = [](const char *whose, const std::string &batch) {
    std::string name = "batch file" + std::string(whose);
    if (!batch.empty())
      return name + ": " + batch;
    return "the " + name + " is not shown: its tables hold more than " +
           std::to_string(kMaxPrinted) + " numbers";
  };
  std::vector<std::pair<std::string, bool>> notes = {{note("", at.batch), false}};
  if (at.secondBatch != at.batch)
    notes.push_back({note(" of the second", at.secondBatch), true});
  return notes;
}

static double costOf(const core::MaskProgram &program);

namespace {

class Prover {
public:
  Prover(mlir::MLIRContext *context, const core::MaskProgram &before,
         const core::MaskProgram &after, Relation relation, bool scores,
         const ProveOptions &options)
      : context(context), before(before), after(after), relation(relation), scores(scores),
        options(options), solver(options.solver, options.timeoutSeconds),
        cost(scores ? 0 : costOf(before) + costOf(after)) {}

  Verdict run();

private:
  /// One query: both programs in one world.
  struct Query {
    Query(mlir::MLIRContext *context, const WorldOptions &options)
        : terms(context), world(terms, options), unknowns(terms) {}
    Terms terms;
    World world;
    Unknowns unknowns;
    Term differ;
    std::string fault;
  };
  std::unique_ptr<Query> makeRules(std::optional<unsigned> maxRanges);
  std::unique_ptr<Query> makeQuery(std::optional<unsigned> maxRanges);
  std::optional<Answer> dump(const std::string &text) const;
  Verdict verdictOf(const Answer &answer) const;
  Verdict findExample(const std::string &otherwise, const std::string &unknown);
  std::optional<Counterexample> replay(Scene scene) const;
  std::optional<Counterexample> sample() const;
  bool differ(bool x, bool y) const { return relation == Relation::Equal ? x != y : x && !y; }

  mlir::MLIRContext *context;
  const core::MaskProgram &before;
  const core::MaskProgram &after;
  Relation relation;
  bool scores;
  const ProveOptions &options;
  Solver solver;
  double cost; ///< of one element, for the evaluator
};

} // namespace

/// What holds for every batch.
std::unique_ptr<Prover::Query> Prover::makeRules(std::optional<unsigned> maxRanges) {
  WorldOptions worldOptions;
  worldOptions.heads = options.heads;
  worldOptions.documentViews = options.documentViews;
  worldOptions.maxRanges = maxRanges;
  auto query = std::make_unique<Query>(context, worldOptions);
  for (const core::MaskProgram *program : {&before, &after})
    if (auto fault = query->world.declare(*program); fault && query->fault.empty())
      query->fault = *fault;
  return query;
}

/// The rules, and "the masks differ" as a term.
std::unique_ptr<Prover::Query> Prover::makeQuery(std::optional<unsigned> maxRanges) {
  std::unique_ptr<Query> query = makeRules(maxRanges);
  if (!query->fault.empty())
    return query;
  Terms &terms = query->terms;
  Term values[2];
  for (int i = 0; i < 2; ++i) {
    const core::MaskProgram &program = i ? after : before;
    core::NodeId root = scores ? program.score : program.mask;
    if (root >= 0)
      values[i] = Encoder(terms, query->world, query->unknowns, program).encode(root).term;
    else
      values[i] = scores ? query->world.score.term : terms.boolean(true);
  }
  query->differ = relation == Relation::Equal ? terms.lnot(terms.equal(values[0], values[1]))
                                              : terms.land(values[0], terms.lnot(values[1]));
  return query;
}

/// Keeps a question as a file, if that is wanted. Returns why that is impossible.
std::optional<Answer> Prover::dump(const std::string &text) const {
  if (options.dumpDir.empty())
    return std::nullopt;
  llvm::SmallString<128> path(options.dumpDir);
  llvm::sys::path::append(path, "query-" + llvm::utohexstr(llvm::xxh3_64bits(text)) + ".smt2");
  std::error_code error;
  llvm::raw_fd_ostream stream(path, error);
  if (!error)
    stream << "(set-logic ALL)\n" << text << "(check-sat)\n";
  if (!error && !stream.has_error())
    return std::nullopt;
  stream.clear_error();
  Answer answer;
  answer.kind = Answer::NoSolver;
  answer.detail = "'" + path.str().str() + "' cannot be written";
  return answer;
}

/// What an answer that is neither sat nor unsat means.
Verdict Prover::verdictOf(const Answer &answer) const {
  Verdict verdict;
  switch (answer.kind) {
  case Answer::NoSolver:
    verdict.outcome = Outcome::NotChecked;
    verdict.reason = answer.detail;
    break;
  case Answer::Crashed:
    verdict.outcome = Outcome::NotChecked;
    verdict.reason = "the solver crashed: " + answer.detail;
    break;
  case Answer::Nonsense:
    verdict.outcome = Outcome::NotChecked;
    verdict.reason = "the solver is not to be trusted: " + answer.detail;
    break;
  case Answer::TimeOut:
    verdict.outcome = Outcome::Unknown;
    verdict.reason = "the solver gave " + answer.detail;
    break;
  default:
    verdict.outcome = Outcome::Unknown;
    verdict.reason = "the solver does not know";
    break;
  }
  return verdict;
}

/// Operations of one element, roughly: a loop whose bounds are no constants counts as 16 runs.
static double costOf(const core::MaskProgram &program) {
  if (program.mask < 0)
    return 0;
  const core::EmissionOrder order = core::emissionOrder(program, program.mask);
  auto runsOf = [&](const core::Node &loop) -> double {
    double bounds[3];
    for (size_t i = 0; i < 3; ++i) {
      const core::Node &bound = program.nodes[loop.operands[i]];
      if (bound.op != core::Op::Const)
        return 16;
      bounds[i] = static_cast<double>(bound.imm);
    }
    return bounds[2] < 1 ? 0 : std::max(0.0, (bounds[1] - bounds[0]) / bounds[2]);
  };
  std::function<double(const std::vector<core::NodeId> &)> sum =
      [&](const std::vector<core::NodeId> &nodes) {
        double total = 0;
        for (core::NodeId id : nodes) {
          const core::Node &node = program.nodes[id];
          total += node.op == core::Op::For ? 1 + runsOf(node) * sum(order.bodies[id]) : 1;
        }
        return total;
      };
  return sum(order.outside);
}

/// Nothing, too, if the masks take the evaluator too long.
std::optional<Counterexample> Prover::replay(Scene scene) const {
  if (cost > kMaxEvaluated)
    return std::nullopt;
  for (const core::MaskProgram *program : {&before, &after})
    addDocumentViews(scene, *program, options.documentViews);
  std::optional<core::Batch> batches[2] = {makeBatch(scene, before), makeBatch(scene, after)};
  if (!batches[0] || !batches[1])
    return std::nullopt;
  core::MaskEvaluator x(before, *batches[0]), y(after, *batches[1]);
  for (int64_t q = scene.q, end = scene.contextLen + scene.queryLen; q < end; ++q)
    for (int64_t k = scene.queryLen == 1 ? scene.k : 0;
         k < (scene.queryLen == 1 ? scene.k + 1 : scene.seqLen); ++k) {
      core::RequestIndex b(scene.b);
      core::HeadIndex h(scene.h);
      bool keepX = x.keep(b, h, core::QueryPos(q), core::KeyPos(k));
      bool keepY = y.keep(b, h, core::QueryPos(q), core::KeyPos(k));
      if (differ(keepX, keepY))
        return Counterexample{scene.b,
                              scene.h,
                              q,
                              k,
                              keepX,
                              keepY,
                              toJson(scene, before).value_or(""),
                              toJson(scene, after).value_or("")};
    }
  return std::nullopt;
}

std::optional<Counterexample> Prover::sample() const {
  if (scores)
    return std::nullopt;
  std::mt19937 random(1);
  double evaluated = 0;
  for (int i = 0; i < kRandomBatches; ++i) {
    Scene scene = makeRandomScene(random, {&before, &after}, options.heads, options.kvHeads);
    evaluated += cost * static_cast<double>(scene.queryLen * scene.seqLen);
    if (evaluated > kMaxEvaluated)
      break;
    if (auto found = replay(std::move(scene)))
      return found;
  }
  return std::nullopt;
}

/// Looks for an example; without one the outcome is unknown, because of `otherwise`, or of what
/// came up here and `unknown`.
Verdict Prover::findExample(const std::string &otherwise, const std::string &unknown) {
  Verdict verdict;
  verdict.outcome = Outcome::Unknown;
  verdict.reason = otherwise;
  if (scores)
    return verdict;
  struct Box {
    int64_t size;
    bool positions, values;
  };
  for (Box box : {Box{3, true, true}, Box{6, true, true}, Box{12, true, true}, Box{12, true, false},
                  Box{12, false, false}, Box{1000, false, false}, Box{0, false, false}}) {
    std::unique_ptr<Query> query = makeQuery(kExampleRanges);
    query->terms.require(query->differ);
    if (box.size)
      query->world.box(box.size, box.positions, box.values);
    Observations seen = query->world.observe();
    std::string text = query->terms.exportText();
    std::optional<Answer> fault = dump(text);
    Answer answer = fault ? *fault : solver.askForModel(text, seen.names());
    if (answer.kind == Answer::Unsat)
      continue;
    if (answer.kind != Answer::Sat) {
      verdict.reason = verdictOf(answer).reason + (unknown.empty() ? "" : "; " + unknown);
      break;
    }
    std::optional<Scene> scene;
    // Without a limit, the keys behind k may be millions.
    for (bool fewKeys : {true, false}) {
      if (verdict.counterexample || (fewKeys && box.size))
        continue;
      scene = makeScene(seen, answer.model, options.heads, options.kvHeads, fewKeys);
      if (scene)
        verdict.counterexample = replay(*scene);
    }
    if (verdict.counterexample) {
      verdict.outcome = Outcome::Refuted;
      verdict.reason.clear();
      return verdict;
    }
    // Where an operation is not interpreted, an example may be none.
    if (!query->unknowns.getNames().empty())
      break;
    bool isSmall = scene && makeBatch(*scene, before) && makeBatch(*scene, after);
    verdict.reason = isSmall ? "the evaluator does not confirm the solver's counterexample"
                             : "the solver's counterexample is too large to be replayed";
  }
  if ((verdict.counterexample = sample())) {
    verdict.outcome = Outcome::Refuted;
    verdict.reason.clear();
  }
  return verdict;
}

Verdict Prover::run() {
  Verdict verdict;
  std::unique_ptr<Query> query = makeQuery(std::nullopt);
  if (!query->fault.empty()) {
    verdict.reason = query->fault;
    return verdict;
  }
  if (query->terms.asBoolean(query->differ) == false) {
    verdict.outcome = Outcome::Proved;
    return verdict;
  }
  std::string unknown;
  for (const std::string &name : query->unknowns.getNames())
    unknown += (unknown.empty() ? "not interpreted: " : ", ") + name;
  query->terms.require(query->differ);
  const std::vector<std::string> texts = {makeRules(kExampleRanges)->terms.exportText(),
                                          query->terms.exportText()};
  for (const std::string &text : texts) {
    if (text.empty()) {
      verdict.reason = "the query cannot be written as SMT-LIB";
      return verdict;
    }
    if (std::optional<Answer> fault = dump(text))
      return verdictOf(*fault);
  }
  std::vector<Answer> answers = solver.ask(texts);
  const Answer &rules = answers[0], &answer = answers[1];
  if (rules.kind == Answer::Unsat) {
    verdict.reason = "the rules of a batch contradict each other: anything would be proved";
    return verdict;
  }
  if (rules.kind == Answer::Sat && answer.kind == Answer::Unsat) {
    // Only the evaluator is trusted more than the solver.
    verdict.counterexample = sample();
    verdict.outcome = verdict.counterexample ? Outcome::Refuted : Outcome::Proved;
    return verdict;
  }
  if (rules.kind == Answer::Sat && answer.kind == Answer::Sat)
    return findExample(
        unknown.empty() ? "the solver says that they differ, but finds no example with at most " +
                              std::to_string(kExampleRanges) + " ranges"
                        : unknown,
        unknown);
  verdict = verdictOf(rules.kind == Answer::Sat ? answer : rules);
  if (verdict.outcome == Outcome::NotChecked)
    return verdict;
  return findExample(verdict.reason + (unknown.empty() ? "" : "; " + unknown), unknown);
}

Verdict proofs::proveMasks(mlir::MLIRContext *context, const core::MaskProgram &before,
                           const core::MaskProgram &after, Relation relation,
                           const ProveOptions &options) {
  return Prover(context, before, after, relation, /*scores=*/false, options).run();
}

/// Why no batch can be for both kernels, or nothing. Types are compared by World.
static std::optional<std::string> findMismatch(const KernelMask &x, const KernelMask &y) {
  for (auto [name, one, other] :
       {std::tuple("heads", x.heads, y.heads), std::tuple("kv_heads", x.kvHeads, y.kvHeads)})
    if (one != other)
      return "their " + std::string(name) + " differ, " + std::to_string(one) + " and " +
             std::to_string(other);
  for (auto [one, other] : {std::pair(&x.program, &y.program), std::pair(&y.program, &x.program)})
    for (const core::ParamDecl &param : one->params)
      for (const core::TableDecl &table : other->tables)
        // The runtime builds the rows of query ranges: no batch names them.
        if (param.name == table.name && table.kind != core::TableKind::QueryRanges)
          return "'" + param.name + "' is a parameter of one and a table of the other";
  return std::nullopt;
}

Verdict proofs::proveKernels(mlir::MLIRContext *context, const KernelMask &before,
                             const KernelMask &after, ProveOptions options) {
  if (auto mismatch = findMismatch(before, after)) {
    Verdict verdict;
    verdict.reason = *mismatch;
    return verdict;
  }
  options.heads = before.heads;
  options.kvHeads = before.kvHeads;
  core::MaskProgram first = before.program;
  for (core::ParamDecl &mine : first.params)
    for (const core::ParamDecl &other : after.program.params)
      if (mine.name == other.name && other.minValue)
        mine.minValue = std::max(mine.minValue.value_or(*other.minValue), *other.minValue);
  return proveMasks(context, first, after.program, Relation::Equal, options);
}

Verdict proofs::proveScores(mlir::MLIRContext *context, const core::MaskProgram &before,
                            const core::MaskProgram &after, const ProveOptions &options) {
  return Prover(context, before, after, Relation::Equal, /*scores=*/true, options).run();
}
