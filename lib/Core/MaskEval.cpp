// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The three readings of a mask program behind one interface.
#include "attn/Core/MaskEval.h"

#include "BoxEval.h"
#include "ExactEval.h"
#include "RowSets.h"

namespace attn::core {

struct MaskEvaluator::Impl {
  Impl(const MaskProgram &program, const Batch &batch)
      : program(program), tables(program, batch),
        mask(program, program.mask, FloatMode::Single, batch, tables),
        score(program, program.score, FloatMode::Double, batch, tables),
        maskDependence(dependence(program, program.mask)) {
    if (program.mask >= 0)
      maskOrder = emissionOrder(program, program.mask);
  }

  /// The keys of a row, kept for the next question about the same row.
  const BoundedSet &rowKeys(const RowPoint &at) {
    if (!row || row->b != at.b || row->h != at.h || row->q != at.q) {
      rowSet = program.mask < 0 ? BoundedSet(IntervalSet::all())
                                : RowSets(tables, at).keysOf(program, maskOrder);
      row = at;
    }
    return rowSet;
  }

  /// Keys of the rows of classify(), kept while consecutive boxes lie over the same rows.
  struct BoxRows {
    bool valid = false;
    int64_t b = 0, h = 0;
    Interval q;
    std::vector<BoundedSet> rows;    ///< one for all rows if the mask does not depend on q
    bool exact = true;               ///< all of them
    Interval visit;                  ///< no row keeps a key outside
    Interval full = Interval::all(); ///< every row keeps every key inside
  };

  const BoxRows &rowsOf(int64_t b, int64_t h, Interval q) {
    if (!maskDependence.h)
      h = 0;
    if (!maskDependence.q)
      q.hi = q.lo + 1;
    if (box.valid && box.b == b && box.h == h && box.q == q)
      return box;
    box = BoxRows();
    box.valid = true;
    box.b = b;
    box.h = h;
    box.q = q;
    for (int64_t i = q.lo; i < q.hi; ++i) {
      const BoundedSet &keys = rowKeys({b, h, i});
      box.exact = box.exact && keys.exact();
      box.visit = hull(box.visit, keys.upper().hull());
      bool oneRun = keys.lower().runs().size() == 1;
      box.full = oneRun ? intersect(box.full, keys.lower().hull()) : Interval::none();
      box.rows.push_back(keys);
    }
    return box;
  }

  const MaskProgram &program;
  TableAccess tables;
  ExactEval mask;
  ExactEval score;
  Dependence maskDependence;
  EmissionOrder maskOrder;
  std::optional<RowPoint> row; ///< whose keys rowSet holds
  BoundedSet rowSet;
  BoxRows box;
};

MaskEvaluator::MaskEvaluator(const MaskProgram &program, const Batch &batch)
    : impl(std::make_unique<Impl>(program, batch)) {}
MaskEvaluator::MaskEvaluator(MaskEvaluator &&) noexcept = default;
MaskEvaluator::~MaskEvaluator() = default;

bool MaskEvaluator::keep(RequestIndex b, HeadIndex h, QueryPos q, KeyPos k) {
  if (impl->program.mask < 0)
    return true;
  return impl->mask.evaluate(0, {b.value, h.value, q.value}, k.value).i != 0;
}

double MaskEvaluator::score(double s, RequestIndex b, HeadIndex h, QueryPos q, KeyPos k) {
  if (impl->program.score < 0)
    return s;
  return impl->score.evaluate(s, {b.value, h.value, q.value}, k.value).f;
}

std::optional<IntervalSet> MaskEvaluator::rowKeys(RequestIndex b, HeadIndex h, QueryPos q) {
  const BoundedSet &keys = impl->rowKeys({b.value, h.value, q.value});
  if (!keys.exact())
    return std::nullopt;
  return keys.upper();
}

IntervalSet MaskEvaluator::rowKeysBound(RequestIndex b, HeadIndex h, QueryPos q) {
  return impl->rowKeys({b.value, h.value, q.value}).upper();
}

TileClass MaskEvaluator::classify(RequestIndex b, HeadIndex h, Interval q, Interval k) {
  if (q.empty() || k.empty())
    return TileClass::Skip;
  if (impl->program.mask < 0)
    return TileClass::Full;

  const Impl::BoxRows &rows = impl->rowsOf(b.value, h.value, q);
  if (intersect(rows.visit, k).empty())
    return TileClass::Skip;
  if (rows.full.lo <= k.lo && k.hi <= rows.full.hi)
    return TileClass::Full;
  bool some = false, all = true;
  for (const BoundedSet &keys : rows.rows) {
    some = some || keys.upper().intersects(k);
    all = all && keys.lower().containsAll(k);
    if (some && !all)
      break;
  }
  if (!some)
    return TileClass::Skip;
  if (all)
    return TileClass::Full;
  if (rows.exact)
    return TileClass::Partial;

  BoxValue value =
      BoxEval(impl->tables, {b.value, h.value, q, k}).evaluate(impl->program, impl->maskOrder);
  return value.hi == 0 ? TileClass::Skip : value.lo == 1 ? TileClass::Full : TileClass::Partial;
}

} // namespace attn::core
