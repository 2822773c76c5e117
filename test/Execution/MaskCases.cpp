// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "MaskCases.h"

#include <algorithm>
#include <array>

using namespace masks;

Needs masks::needs(Atom atom) {
  Needs n;
  n.ranges = atom == Atom::MmPrefix || atom == Atom::MmPrefixClamp || atom == Atom::QueryRange;
  n.documents = atom == Atom::Document;
  return n;
}

int masks::numParams(Atom atom) {
  switch (atom) {
  case Atom::Causal:
  case Atom::MmPrefix:
  case Atom::Document:
  case Atom::QueryRange:
    return 0;
  case Atom::WindowBoth:
  case Atom::InRows:
    return 2;
  default:
    return 1;
  }
}

static std::vector<std::vector<Int>> makeSettings(Atom atom) {
  std::vector<Int> values = {0, 1, 2, 3, 4, 5, 6, kHuge};
  if (atom == Atom::Sliding)
    values.front() = 7; // a count of 0 is refused
  std::vector<std::vector<Int>> result;
  switch (numParams(atom)) {
  case 0:
    return {{}};
  case 1:
    for (Int a : values)
      result.push_back({a});
    return result;
  default:
    for (Int a : values)
      for (Int b : values)
        result.push_back({a, b});
    return result;
  }
}

const std::vector<std::vector<Int>> &masks::settings(Atom atom) {
  static const std::array<std::vector<std::vector<Int>>, kNumAtoms> all = [] {
    std::array<std::vector<std::vector<Int>>, kNumAtoms> lists;
    for (int i = 0; i < kNumAtoms; ++i)
      lists[i] = makeSettings(static_cast<Atom>(i));
    return lists;
  }();
  return all[static_cast<int>(atom)];
}

std::vector<Int> masks::randomSetting(Atom atom, Int length, std::mt19937 &rng) {
  std::vector<Int> result;
  for (int i = 0; i < numParams(atom); ++i) {
    Int lowest = atom == Atom::Sliding ? 1 : 0;
    Int value = lowest + static_cast<Int>(rng() % static_cast<unsigned>(length + 2));
    result.push_back(rng() % 16 == 0 ? kHuge : value);
  }
  return result;
}

bool masks::keep(Atom atom, const Int *p, const truth::Request &r, Int q, Int k) {
  switch (atom) {
  case Atom::Causal:
    return truth::causal(q, k);
  case Atom::WindowLeft:
    return truth::windowLeft(q, k, p[0]);
  case Atom::WindowRight:
    return truth::windowRight(q, k, p[0]);
  case Atom::WindowBoth:
    return truth::window(q, k, p[0], p[1]);
  case Atom::Sliding:
    return truth::sliding(q, k, p[0]);
  case Atom::MmPrefix:
    return truth::mmPrefix(r, q, k);
  case Atom::MmPrefixClamp:
    return truth::mmPrefixClamp(r, q, k, p[0]);
  case Atom::Prefix:
    return truth::prefix(k, p[0]);
  case Atom::Document:
    return truth::document(r, q, k);
  case Atom::Global:
    return truth::global(q, k, p[0]);
  case Atom::InRows:
    return truth::inRows(k, p[0], p[1]);
  case Atom::QueryRange:
    return truth::inQueryRange(r, q, k);
  }
  return false;
}

int Expr::leaf(Atom atom, bool negated) {
  Node node;
  node.negated = negated;
  node.atom = atom;
  node.firstParam = totalParams;
  totalParams += numParams(atom);
  paramAtoms.push_back(atom);
  nodes.push_back(node);
  return static_cast<int>(nodes.size()) - 1;
}

int Expr::combine(Node::Kind kind, int lhs, int rhs, bool negated) {
  Node node;
  node.kind = kind;
  node.negated = negated;
  node.lhs = lhs;
  node.rhs = rhs;
  nodes.push_back(node);
  return static_cast<int>(nodes.size()) - 1;
}

Needs Expr::needs() const {
  Needs all;
  for (Atom atom : paramAtoms) {
    all.ranges |= masks::needs(atom).ranges;
    all.documents |= masks::needs(atom).documents;
  }
  return all;
}

static bool keepNode(const Expr &expr, int id, const Int *params, const truth::Request &r, Int q,
                     Int k) {
  const Node &node = expr.nodes[id];
  bool value = false;
  switch (node.kind) {
  case Node::Leaf:
    value = keep(node.atom, params + node.firstParam, r, q, k);
    break;
  case Node::And:
    value = keepNode(expr, node.lhs, params, r, q, k) && keepNode(expr, node.rhs, params, r, q, k);
    break;
  case Node::Or:
    value = keepNode(expr, node.lhs, params, r, q, k) || keepNode(expr, node.rhs, params, r, q, k);
    break;
  }
  return value != node.negated;
}

bool masks::keep(const Expr &expr, const Int *params, const truth::Request &r, Int q, Int k) {
  return keepNode(expr, static_cast<int>(expr.nodes.size()) - 1, params, r, q, k);
}

static const char *nameOf(Atom atom) {
  static const char *const names[kNumAtoms] = {
      "causal",          "window_left", "window_right", "window", "sliding", "mm_prefix",
      "mm_prefix_clamp", "prefix",      "document",     "global", "in_rows", "query_range"};
  return names[static_cast<int>(atom)];
}

static std::string describeNode(const Expr &expr, int id) {
  const Node &node = expr.nodes[id];
  std::string text;
  if (node.kind == Node::Leaf) {
    text = nameOf(node.atom);
    for (int i = 0; i < numParams(node.atom); ++i)
      text += (i ? ", p" : "(p") + std::to_string(node.firstParam + i);
    text += numParams(node.atom) ? ")" : "";
  } else {
    text = "(" + describeNode(expr, node.lhs) + (node.kind == Node::And ? " and " : " or ") +
           describeNode(expr, node.rhs) + ")";
  }
  return (node.negated ? "not " : "") + text;
}

std::string masks::describe(const Expr &expr) {
  return describeNode(expr, static_cast<int>(expr.nodes.size()) - 1);
}

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

/// Every set of at most two ranges with bounds up to kMaxLen; overlapping, touching, equal and cut
/// ones included, and both orders of a pair occur. Without `degenerate`, ranges that are not live
/// are left out: the binder drops them, so they give no new batch.
static std::vector<std::vector<truth::Range>> rangeSets(Int seqLen, bool degenerate) {
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
static std::vector<std::vector<int>> documentCuts(Int seqLen) {
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

void masks::addRequests(Needs needs, bool degenerate, Int q, Int kv,
                        std::vector<truth::Request> &to) {
  truth::Request r = truth::request(q, kv);
  auto sets = needs.ranges ? rangeSets(kv, degenerate) : std::vector<std::vector<truth::Range>>{{}};
  auto cuts = needs.documents ? documentCuts(kv) : std::vector<std::vector<int>>{{}};
  for (const auto &set : sets)
    for (const auto &cut : cuts) {
      r.ranges = set;
      r.documents = cut;
      to.push_back(r);
    }
}

truth::Request masks::randomRequest(Needs needs, Int maxQuery, Int maxSeq, std::mt19937 &rng) {
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

//===----------------------------------------------------------------------===//
// Spec text
//===----------------------------------------------------------------------===//

/// Prints the operation of a leaf; `value(i)` is its parameter i as an operand.
static std::string leafText(const Node &node, const std::string &name, const std::string &p0,
                            const std::string &p1, bool literal) {
  const std::string head = "    " + name + " = attn.";
  switch (node.atom) {
  case Atom::Causal:
    return head + "causal %q, %k\n";
  case Atom::WindowLeft:
    return head + "window %q, %k left(" + p0 + ")\n";
  case Atom::WindowRight:
    return head + "window %q, %k right(" + p0 + ")\n";
  case Atom::WindowBoth:
    return head + "window %q, %k left(" + p0 + ") right(" + p1 + ")\n";
  case Atom::Sliding:
    return head + "sliding %q, %k count(" + p0 + ")\n";
  case Atom::MmPrefix:
    return head + "mm_prefix %mm, %b, %q, %k\n";
  case Atom::MmPrefixClamp:
    return head + "mm_prefix %mm, %b, %q, %k clamp(" + p0 + ")\n";
  case Atom::Prefix:
    return head + "prefix %k, " + p0 + "\n";
  case Atom::Document:
    return head + "document %doc, %b, %q, %k\n";
  case Atom::Global:
    return head + "global %q, %k, " + p0 + "\n";
  case Atom::InRows: {
    std::string lo = name + "_lo";
    std::string hi = name + "_hi";
    auto index = [&](const std::string &p) {
      return literal ? "arith.constant " + p + " : index\n"
                     : "arith.index_cast " + p + " : i64 to index\n";
    };
    return "    " + lo + " = " + index(p0) + "    " + hi + " = " + index(p1) + head +
           "in_rows %k, " + lo + ", " + hi + "\n";
  }
  case Atom::QueryRange:
    return "    " + name + "_lo, " + name + "_hi = attn.row_range %rows, %q\n" + head +
           "in_rows %k, " + name + "_lo, " + name + "_hi\n";
  }
  return "";
}

/// Emits lines of a mask region and hands out names for values.
class ByHand {
public:
  ByHand(const std::string &name, bool literal) : prefix(name), literal(literal) {}

  std::string def(const std::string &op) {
    std::string value = prefix + "_" + std::to_string(next++);
    text += "    " + value + " = " + op + "\n";
    return value;
  }
  std::string cmp(const std::string &predicate, const std::string &a, const std::string &b) {
    return def("arith.cmpi " + predicate + ", " + a + ", " + b + " : index");
  }
  std::string both(const std::string &a, const std::string &b) {
    return def("arith.andi " + a + ", " + b + " : i1");
  }
  std::string either(const std::string &a, const std::string &b) {
    return def("arith.ori " + a + ", " + b + " : i1");
  }
  std::string param(const std::string &p, const char *type) {
    return literal ? def("arith.constant " + p + " : index")
                   : def("arith.index_cast " + p + " : " + type + " to index");
  }
  std::string age() { return def("arith.subi %q, %k : index"); }
  std::string ahead() { return def("arith.subi %k, %q : index"); }
  /// The loop over the live ranges, as kernels write it.
  std::string scan() {
    std::string zero = def("arith.constant 0 : index");
    std::string one = def("arith.constant 1 : index");
    std::string none = def("arith.constant false");
    std::string count = def("attn.num_ranges %mm[%b]");
    std::string found = prefix + "_found";
    std::string range = prefix + "_r";
    std::string start = prefix + "_s";
    std::string end = prefix + "_e";
    std::string result = prefix + "_scan";
    text += "    " + result + " = scf.for " + range + " = " + zero + " to " + count + " step " +
            one + " iter_args(" + found + " = " + none + ") -> (i1) {\n    " + start + ", " + end +
            " = attn.range %mm[%b, " + range + "]\n";
    std::string q = both(cmp("sle", start, "%q"), cmp("sge", end, "%q"));
    std::string k = both(cmp("sge", "%k", start), cmp("sle", "%k", end));
    text += "    scf.yield " + either(found, both(q, k)) + " : i1\n    }\n";
    return result;
  }

  std::string text;

private:
  std::string prefix;
  bool literal;
  int next = 0;
};

/// The value of a leaf written by hand, or "" if it has only the named form.
static std::string leafByHand(ByHand &out, const Node &node, const std::string &p0,
                              const std::string &p1) {
  switch (node.atom) {
  case Atom::Causal:
    return out.cmp("sle", "%k", "%q");
  case Atom::WindowLeft:
    return out.cmp("sle", out.age(), out.param(p0, "i32"));
  case Atom::WindowRight:
    return out.cmp("sge", out.param(p0, "i32"), out.ahead());
  case Atom::WindowBoth: {
    std::string left = out.cmp("sle", out.age(), out.param(p0, "i32"));
    return out.both(left, out.cmp("sle", out.ahead(), out.param(p1, "i32")));
  }
  case Atom::Sliding:
    return out.cmp("slt", out.age(), out.param(p0, "i32"));
  case Atom::MmPrefix:
    return out.scan();
  case Atom::MmPrefixClamp: {
    std::string scan = out.scan();
    return out.both(scan, out.cmp("sle", out.age(), out.param(p0, "i32")));
  }
  case Atom::Prefix:
    return out.cmp("slt", "%k", out.param(p0, "i32"));
  case Atom::Global: {
    std::string n = out.param(p0, "i32");
    return out.either(out.cmp("slt", "%k", n), out.cmp("slt", "%q", n));
  }
  case Atom::InRows: {
    std::string lo = out.cmp("sle", out.param(p0, "i64"), "%k");
    return out.both(lo, out.cmp("sgt", out.param(p1, "i64"), "%k"));
  }
  case Atom::Document:
  case Atom::QueryRange:
    return "";
  }
  return "";
}

static std::string declarations(const Expr &expr, bool literal) {
  std::string text;
  if (!literal && expr.totalParams) {
    text += " params(";
    int next = 0;
    for (Atom atom : expr.paramAtoms)
      for (int i = 0; i < numParams(atom); ++i, ++next)
        text += (next ? ", %p" : "%p") + std::to_string(next) +
                (atom == Atom::InRows ? ": i64" : ": i32");
    text += ")";
  }
  std::string tables;
  auto add = [&](const std::string &table) { tables += (tables.empty() ? "" : ", ") + table; };
  if (expr.needs().ranges)
    add("%mm: !attn.ranges");
  if (expr.needs().documents)
    add("%doc: !attn.documents");
  for (Atom atom : expr.paramAtoms)
    if (atom == Atom::QueryRange) {
      add("%rows: !attn.query_ranges from %mm");
      break;
    }
  return tables.empty() ? text : text + " tables(" + tables + ")";
}

/// Prints node `id` and returns the name of its value.
static std::string nodeText(const Expr &expr, int id, const KernelText &kernel,
                            const std::vector<Int> *literals,
                            const std::vector<std::string> &values, std::string &text) {
  const Node &node = expr.nodes[id];
  const std::string name = "%m" + std::to_string(id);
  const bool byHand = kernel.style == Style::ByHand;
  ByHand hand(name, literals != nullptr);
  std::string value;
  if (node.kind == Node::Leaf) {
    auto param = [&](int i) {
      if (i >= numParams(node.atom))
        return std::string();
      i += node.firstParam;
      return literals ? std::to_string((*literals)[i]) : "%p" + std::to_string(i);
    };
    value = byHand ? leafByHand(hand, node, param(0), param(1)) : "";
    if (value.empty()) {
      value = name;
      hand.text += leafText(node, name, param(0), param(1), literals != nullptr);
    }
  } else if (byHand) {
    const std::string &lhs = values[node.lhs];
    const std::string &rhs = values[node.rhs];
    value = node.kind == Node::And ? hand.both(lhs, rhs) : hand.either(lhs, rhs);
  } else {
    value = hand.def((node.kind == Node::And ? "attn.and " : "attn.or ") + values[node.lhs] + ", " +
                     values[node.rhs]);
  }
  if (node.negated && byHand) {
    std::string yes = hand.def("arith.constant true");
    value = hand.def("arith.xori " + value + ", " + yes + " : i1");
  } else if (node.negated) {
    value = hand.def("attn.not " + value);
  }
  text += hand.text;
  return value;
}

std::string masks::specText(const Expr &expr, const KernelText &kernel,
                            const std::vector<Int> *literals) {
  std::string text = "attn.kernel @" + kernel.name + " " + kernel.clauses +
                     declarations(expr, literals != nullptr) +
                     " {\n  attn.mask (%b, %h, %q, %k) {\n";
  std::vector<std::string> values;
  for (size_t id = 0; id < expr.nodes.size(); ++id)
    values.push_back(nodeText(expr, static_cast<int>(id), kernel, literals, values, text));
  return text + "    attn.yield " + values.back() + " : i1\n  }\n}\n";
}
