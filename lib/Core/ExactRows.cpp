// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether RowSets gives an exact set for every row of every batch: the rules of RowSets.cpp, on
// what a node can be over all data. Where this says Known, Linear or exact keys, RowSets finds so
// for any values; where it gives up, RowSets may still succeed on some.
#include "attn/Core/MaskEval.h"

#include "BoxEval.h"
#include "RowSets.h"

#include <algorithm>

namespace attn::core {

namespace {

/// What a node is as a function of k, whatever the data.
struct Form {
  enum Kind : uint8_t {
    Unknown, ///< not followed
    Known,   ///< the same for every k; an integer lies in `values`
    Linear,  ///< Known, or linear in k: `values` bounds the offset, `factor` the size of the factor
    Keys,    ///< a Bool that depends on k
  };
  Kind kind = Unknown;
  BoxValue values;
  int64_t factor = 0;
  bool divided = false; ///< Linear: perhaps over a constant
  bool exact = false;   ///< Keys: RowSets knows the set

  static Form known(BoxValue values) {
    Form f;
    f.kind = Known;
    f.values = values;
    return f;
  }
  static Form keys(bool exact) {
    Form f;
    f.kind = Keys;
    f.exact = exact;
    return f;
  }
  static Form unknown(ScalarType type) { return type == ScalarType::Bool ? keys(false) : Form(); }

  bool isKnown() const { return kind == Known; }
  /// Of a Bool.
  bool isExact() const { return kind == Known || (kind == Keys && exact); }
  bool operator==(const Form &o) const {
    return kind == o.kind && values.lo == o.values.lo && values.hi == o.values.hi &&
           factor == o.factor && divided == o.divided && exact == o.exact;
  }
};

bool within(const BoxValue &v, int64_t limit) { return v.lo >= -limit && v.hi <= limit; }

BoxValue hullOf(const BoxValue &a, const BoxValue &b) {
  return BoxValue::range(std::min(a.lo, b.lo), std::max(a.hi, b.hi));
}

Form makeLinear(ScalarType type, int64_t factor, const BoxValue &offset) {
  if (factor > kMaxFactor || !within(offset, kMaxOffset))
    return {};
  int64_t reach = factor * kPositionLimit;
  if (offset.lo - reach < minOf(type) || offset.hi + reach > maxOf(type))
    return {};
  Form f;
  f.kind = Form::Linear;
  f.factor = factor;
  f.values = offset;
  return f;
}

/// True if the form can take part in sums: known or linear, undivided, not too large.
bool isSummand(const Form &f) {
  return (f.isKnown() && within(f.values, kMaxOffset)) || (f.kind == Form::Linear && !f.divided);
}

/// Either of two forms.
Form joined(ScalarType type, const Form &a, const Form &b) {
  if (a.isKnown() && b.isKnown())
    return Form::known(hullOf(a.values, b.values));
  if (type == ScalarType::Bool)
    return Form::keys(a.isExact() && b.isExact());
  auto mayJoin = [](const Form &f) { return isSummand(f) || f.kind == Form::Linear; };
  if (type == ScalarType::F32 || !mayJoin(a) || !mayJoin(b))
    return {};
  Form f = a;
  f.kind = Form::Linear;
  f.factor = std::max(a.factor, b.factor);
  f.values = hullOf(a.values, b.values);
  f.divided = a.divided || b.divided;
  return f;
}

Form leafForm(const MaskProgram &program, const Node &node) {
  constexpr int64_t kMaxCount = INT32_MAX; // of requests and heads
  switch (node.op) {
  case Op::Const:
    return Form::known(BoxValue::point(node.imm));
  case Op::IndexB:
  case Op::IndexH:
    return Form::known(BoxValue::range(0, kMaxCount));
  case Op::IndexQ:
    return Form::known(BoxValue::range(1 - kPositionLimit, kPositionLimit - 1));
  case Op::IndexK:
    return makeLinear(ScalarType::I64, 1, BoxValue::point(0));
  case Op::Param: {
    const ParamDecl &param = program.params[node.ref];
    BoxValue values = BoxValue::anyOf(param.type);
    if (param.minValue)
      values.lo = std::max(values.lo, *param.minValue);
    return Form::known(values);
  }
  default: // Score
    return {};
  }
}

Form tableForm(const MaskProgram &program, const Node &node, const std::vector<Form> &operands) {
  const TableDecl &table = program.tables[node.ref];
  for (size_t i = 0; i < operands.size(); ++i) {
    bool ignored = node.op == Op::TableLoad && isImplicit(table.dims[i]);
    if (!ignored && !operands[i].isKnown())
      return {};
  }
  if (node.op == Op::TableLoad)
    return Form::known(BoxValue::anyOf(node.type));
  // Counts, bounds and half-open rows of 32-bit ranges.
  return Form::known(BoxValue::range(INT32_MIN, int64_t(INT32_MAX) + 1));
}

/// A pure operation on known operands.
Form knownForm(const MaskProgram &program, const Node &node, const std::vector<Form> &operands) {
  if (node.type == ScalarType::F32)
    return Form::known({});
  if (node.op == Op::Select)
    return Form::known(hullOf(operands[1].values, operands[2].values));
  ScalarType argType = program.nodes[node.operands[0]].type;
  bool integers = argType != ScalarType::F32, points = integers;
  for (const Form &f : operands)
    points = points && f.values.isPoint();
  if (points) {
    auto scalar = [&](size_t i) {
      return i < operands.size() ? Scalar::ofInt(operands[i].values.lo) : Scalar();
    };
    Scalar v =
        evalPure(FloatMode::Single, node.op, node.type, argType, scalar(0), scalar(1), scalar(2));
    return Form::known(BoxValue::point(v.i));
  }
  if (!integers)
    return Form::known(BoxValue::anyOf(node.type));
  return Form::known(rangeOf(node.op, node.type, argType, operands[0].values,
                             operands.size() > 1 ? operands[1].values : BoxValue()));
}

Form boolForm(const Node &node, const std::vector<Form> &operands) {
  switch (node.op) {
  case Op::Not:
  case Op::And:
  case Op::MinU:
  case Op::Or:
  case Op::MaxU:
  case Op::Xor:
  case Op::CmpNe:
  case Op::CmpEq:
  case Op::Select:
    return Form::keys(
        std::all_of(operands.begin(), operands.end(), [](const Form &f) { return f.isExact(); }));
  default:
    return Form::keys(false);
  }
}

Form integerForm(const Node &node, const std::vector<Form> &operands) {
  const Form &a = operands[0];
  if (familyOf(node.op) == OpFamily::IntCast) {
    if (node.op == Op::ZExt || a.kind != Form::Linear)
      return {};
    return makeLinear(node.type, a.factor, a.values).kind == Form::Linear ? a : Form();
  }
  if (operands.size() != 2 || !isSummand(a) || !isSummand(operands[1]))
    return {};
  const Form &b = operands[1];
  switch (node.op) {
  case Op::Add:
  case Op::Sub: {
    // Offsets are at most 2^60, so their sum and difference fit.
    BoxValue sum = BoxValue::range(a.values.lo + b.values.lo, a.values.hi + b.values.hi);
    BoxValue difference = BoxValue::range(a.values.lo - b.values.hi, a.values.hi - b.values.lo);
    return makeLinear(node.type, a.factor + b.factor, node.op == Op::Add ? sum : difference);
  }
  case Op::Mul: {
    const Form &by = a.isKnown() ? a : b, &form = a.isKnown() ? b : a;
    if (!by.isKnown() || !within(by.values, kMaxFactor) || !within(form.values, kPositionLimit))
      return {};
    int64_t largest = std::max(std::abs(by.values.lo), std::abs(by.values.hi));
    return makeLinear(node.type, form.factor * largest,
                      rangeOf(Op::Mul, ScalarType::I64, ScalarType::I64, form.values, by.values));
  }
  case Op::DivS:
  case Op::FloorDivS:
  case Op::ShrS: {
    bool shift = node.op == Op::ShrS;
    if (!b.isKnown() || b.values.lo < (shift ? 0 : 1) ||
        b.values.hi > (shift ? 30 : kPositionLimit))
      return {};
    Form f = a;
    f.divided = true;
    return f;
  }
  default:
    return {};
  }
}

bool isUnsigned(Op op) { return op >= Op::CmpUlt && op <= Op::CmpUge; }

Form compareForm(Op op, const Form &a, const Form &b) {
  auto followed = [](const Form &f) { return f.isKnown() || f.kind == Form::Linear; };
  if (!followed(a) || !followed(b))
    return Form::keys(false);
  if (a.isKnown() || b.isKnown())
    return Form::keys(true);
  if (isUnsigned(op) || !isSummand(a) || !isSummand(b))
    return Form::keys(false);
  BoxValue difference = BoxValue::range(a.values.lo - b.values.hi, a.values.hi - b.values.lo);
  return Form::keys(makeLinear(ScalarType::I64, a.factor + b.factor, difference).kind ==
                    Form::Linear);
}

/// The emitter.
class ExactRows {
public:
  using Value = Form;

  Form emit(const MaskProgram &program, NodeId id, const std::vector<Form> &operands) {
    const Node &node = program.nodes[id];
    OpFamily family = familyOf(node.op);
    if (node.op == Op::ForResult)
      return resultOf(node);
    if (family == OpFamily::Leaf)
      return leafForm(program, node);
    if (family == OpFamily::Table)
      return tableForm(program, node, operands);
    bool allKnown =
        std::all_of(operands.begin(), operands.end(), [](const Form &f) { return f.isKnown(); });
    if (family == OpFamily::Mask)
      return Form::keys(allKnown);
    if (isPure(node.op) && allKnown)
      return knownForm(program, node, operands);
    if (node.op == Op::Select && operands[0].isKnown())
      return joined(node.type, operands[1], operands[2]);
    if (node.type == ScalarType::F32)
      return {};
    if (node.type != ScalarType::Bool)
      return integerForm(node, operands);
    if (program.nodes[node.operands[0]].type == ScalarType::Bool)
      return boolForm(node, operands);
    if (family == OpFamily::IntCompare)
      return compareForm(node.op, operands[0], operands[1]);
    return Form::keys(false);
  }

  /// Repeats the body on ever wider forms until they hold for every iteration.
  template <class Body>
  Form emitFor(const MaskProgram &program, NodeId id, const std::vector<Form> &boundsAndInits,
               Body body) {
    const Node &node = program.nodes[id];
    std::vector<Form> carried(boundsAndInits.begin() + 3, boundsAndInits.end());
    auto typeOf = [&](size_t c) { return program.nodes[node.operands[3 + c]].type; };
    const BoxValue &lb = boundsAndInits[0].values, &ub = boundsAndInits[1].values;
    bool followed = boundsAndInits[0].isKnown() && boundsAndInits[1].isKnown() &&
                    boundsAndInits[2].isKnown() &&
                    charge(program, node, tripsOf(lb, ub, boundsAndInits[2].values), lb.lo);
    if (followed) {
      const int64_t outer = repeats;
      repeats = bodyRepeats;
      ++depth;
      Form index = Form::known(BoxValue::range(lb.lo, ub.hi > lb.lo ? ub.hi - 1 : lb.lo));
      for (bool changed = true; changed && followed;) {
        followed = walksLeft-- > 0;
        std::vector<Form> next = body(index, carried);
        changed = false;
        for (size_t c = 0; c < carried.size(); ++c) {
          Form wider = joined(typeOf(c), carried[c], next[c]);
          if (wider == carried[c])
            continue;
          changed = true;
          carried[c] = widened(typeOf(c), wider);
        }
      }
      --depth;
      repeats = outer;
    }
    if (!followed)
      for (size_t c = 0; c < carried.size(); ++c)
        carried[c] = Form::unknown(typeOf(c));
    results.erase(std::remove_if(results.begin(), results.end(),
                                 [id](const auto &entry) { return entry.first == id; }),
                  results.end());
    results.emplace_back(id, carried);
    return carried[0];
  }

private:
  /// A form that changed from one iteration to the next goes to the top of its kind.
  static Form widened(ScalarType type, const Form &f) {
    if (f.isKnown())
      return Form::known(BoxValue::anyOf(type));
    return f.kind == Form::Keys ? f : Form();
  }

  Form resultOf(const Node &node) const {
    for (const auto &[loop, values] : results)
      if (loop == node.ref)
        return values[static_cast<size_t>(node.imm)];
    return Form::unknown(node.type);
  }

  /// Most iterations of a loop, at most kMaxIterations + 1.
  static int64_t tripsOf(const BoxValue &lb, const BoxValue &ub, const BoxValue &step) {
    if (ub.hi <= lb.lo || step.hi < 1)
      return 0;
    uint64_t span = static_cast<uint64_t>(ub.hi) - static_cast<uint64_t>(lb.lo);
    uint64_t trips = (span - 1) / static_cast<uint64_t>(std::max<int64_t>(1, step.lo)) + 1;
    return static_cast<int64_t>(std::min<uint64_t>(trips, kMaxIterations + 1));
  }

  /// Takes a loop's iterations from what RowSets spends on a row; false if they may be too many.
  bool charge(const MaskProgram &program, const Node &loop, int64_t trips, int64_t firstLb) {
    if (isRangeScan(program, loop, firstLb, depth)) {
      bodyRepeats = kMaxIterations + 1;
      return true;
    }
    bodyRepeats = std::min(kMaxIterations + 1, repeats * trips);
    iterations = std::min(kMaxIterations + 1, iterations + bodyRepeats);
    return iterations <= kMaxIterations;
  }

  int depth = 0;            ///< loops around the current place
  int64_t repeats = 1;      ///< most runs of the current place for one row
  int64_t bodyRepeats = 1;  ///< of the body of the loop just charged
  int64_t iterations = 0;   ///< charged so far
  int64_t walksLeft = 4096; ///< through loop bodies, here
  std::vector<std::pair<NodeId, std::vector<Form>>> results;
};

} // namespace

bool hasExactRows(const MaskProgram &program) {
  if (program.mask < 0)
    return true;
  ExactRows rows;
  return emitProgram(program, program.mask, rows).isExact();
}

} // namespace attn::core
