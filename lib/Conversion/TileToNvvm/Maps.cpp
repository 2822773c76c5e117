// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Maps: the region once for each element or row of a thread. What does not depend on the element
// is emitted once for the map, the row or the column.

#include "KernelLowering.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace attn::tile;

namespace {
/// What an operation of a region depends on.
enum Dependence : unsigned { kNothing = 0, kRow = 1, kColumn = 2, kElement = 3 };

class Dependences {
public:
  void set(Value value, unsigned dependence) { ofValue[value] = dependence; }

  /// In order, as operands come first. `all`: what an operation with effects depends on.
  void add(Operation &op, unsigned all) {
    unsigned dependence = kNothing;
    auto load = dyn_cast<LLVM::LoadOp>(op);
    if (!isMemoryEffectFree(&op) && !(load && load.getInvariant()))
      dependence = all;
    op.walk([&](Operation *nested) {
      for (Value operand : nested->getOperands())
        dependence |= ofValue.lookup(operand);
    });
    ofOp[&op] = dependence;
    for (Value result : op.getResults())
      ofValue[result] = dependence;
  }

  unsigned get(Operation &op) const { return ofOp.lookup(&op); }

private:
  DenseMap<Value, unsigned> ofValue;
  DenseMap<Operation *, unsigned> ofOp;
};

/// The operations of a map's region by what they depend on.
struct SortedBody {
  SmallVector<Operation *> operations[4];

  SortedBody(Block &body, const Dependences &dependences) {
    for (Operation &op : body.without_terminator())
      operations[dependences.get(op)].push_back(&op);
  }
};
} // namespace

/// Values a row or a column binds, to be bound again for each of its elements.
using Bindings = SmallVector<std::pair<Value, Values>>;

LogicalResult KernelLowering::emitMap(MapOp op) {
  Block &body = op.getBody().front();
  unsigned numInputs = op.getInputs().size();
  Value rowIndex = body.getArgument(numInputs), columnIndex = body.getArgument(numInputs + 1);
  Dependences dependences;
  for (auto [input, argument] : llvm::zip(op.getInputs(), body.getArguments()))
    dependences.set(argument, isa<RowsType>(input.getType()) ? kRow : kElement);
  dependences.set(rowIndex, kRow);
  dependences.set(columnIndex, kColumn);
  for (Operation &nested : body.without_terminator())
    dependences.add(nested, kElement);
  SortedBody sorted(body, dependences);

  int64_t columns = 0;
  for (Type type : llvm::concat<const Type>(op.getOperandTypes(), op.getResultTypes())) {
    if (auto fragment = dyn_cast<FragmentType>(type))
      columns = fragment.getCols();
    else if (auto bits = dyn_cast<BitsType>(type))
      columns = bits.getCols();
  }
  SmallVector<Values> inputs;
  for (Value input : op.getInputs())
    inputs.push_back(lookup(input));

  auto emitAll = [&](ArrayRef<Operation *> operations, Bindings *bindings) -> LogicalResult {
    for (Operation *nested : operations) {
      if (failed(emitOp(*nested)))
        return failure();
      if (bindings)
        for (Value result : nested->getResults())
          bindings->emplace_back(result, lookup(result));
    }
    return success();
  };
  auto rebind = [&](const Bindings &bindings) {
    for (const auto &[value, values] : bindings)
      bind(value, values);
  };

  if (failed(emitAll(sorted.operations[kNothing], nullptr)))
    return failure();
  Bindings ofRow[2];
  for (int64_t r = 0; r < 2; ++r) {
    for (auto [input, argument, values] : llvm::zip(op.getInputs(), body.getArguments(), inputs))
      if (isa<RowsType>(input.getType()))
        ofRow[r].emplace_back(argument, Values{values[r]});
    if (!rowIndex.use_empty())
      ofRow[r].emplace_back(rowIndex, Values{e.add(firstRow, e.i32(8 * r))});
    rebind(ofRow[r]);
    if (failed(emitAll(sorted.operations[kRow], &ofRow[r])))
      return failure();
  }

  // For each result, its registers, or the bits of either row.
  size_t numResults = op.getNumResults();
  SmallVector<Values> registers(numResults);
  SmallVector<Values> bits[2] = {SmallVector<Values>(numResults), SmallVector<Values>(numResults)};
  for (int64_t j = 0; j < columns / 8; ++j) {
    Bindings ofColumn[2];
    for (int64_t c = 0; c < 2; ++c) {
      if (!columnIndex.use_empty())
        ofColumn[c].emplace_back(columnIndex, Values{e.add(firstColumn, e.i32(8 * j + c))});
      rebind(ofColumn[c]);
      if (failed(emitAll(sorted.operations[kColumn], &ofColumn[c])))
        return failure();
    }
    for (int64_t element = 0; element < 4; ++element) {
      int64_t r = element / 2, c = element % 2;
      rebind(ofRow[r]);
      rebind(ofColumn[c]);
      for (auto [input, argument, values] :
           llvm::zip(op.getInputs(), body.getArguments(), inputs)) {
        if (isa<FragmentType>(input.getType()))
          bind(argument, {values[4 * j + element]});
        if (isa<BitsType>(input.getType())) {
          int64_t number = 2 * j + c;
          Value word = values[r * values.size() / 2 + number / 32];
          bind(argument, {e.bitXor(isClear(word, number % 32), e.i1(true))});
        }
      }
      if (failed(emitAll(sorted.operations[kElement], nullptr)))
        return failure();
      for (auto [i, value] : llvm::enumerate(body.getTerminator()->getOperands())) {
        bool isBits = isa<BitsType>(op.getResult(i).getType());
        (isBits ? bits[r][i] : registers[i]).push_back(lookupOne(value));
      }
    }
  }
  e.setLoc(op.getLoc());
  for (auto [i, result] : llvm::enumerate(op.getResults())) {
    if (isa<BitsType>(result.getType()))
      for (const SmallVector<Values> &row : bits)
        llvm::append_range(registers[i], packBits(row[i]));
    bind(result, registers[i]);
  }
  return success();
}

/// Words of 32 bits each from i1 values, lowest bit first.
Values KernelLowering::packBits(ArrayRef<Value> bits) {
  Values words;
  for (; !bits.empty(); bits = bits.drop_front(std::min<size_t>(bits.size(), 32))) {
    Values set;
    for (auto [i, bit] : llvm::enumerate(bits.take_front(32)))
      set.push_back(e.select(bit, e.i32(int64_t(1) << i), e.i32(0)));
    words.push_back(emitTree(set, [&](Value a, Value b) { return e.bitOr(a, b); }));
  }
  return words;
}

LogicalResult KernelLowering::emitMapRows(MapRowsOp op) {
  Block &body = op.getBody().front();
  Value rowIndex = body.getArgument(op.getInputs().size());
  Dependences dependences;
  for (Value argument : body.getArguments())
    dependences.set(argument, kRow);
  for (Operation &nested : body.without_terminator())
    dependences.add(nested, kRow);

  SmallVector<Values> results(op.getNumResults());
  for (int64_t r = 0; r < 2; ++r) {
    for (auto [input, argument] : llvm::zip(op.getInputs(), body.getArguments()))
      bind(argument, {lookup(input)[r]});
    if (!rowIndex.use_empty())
      bind(rowIndex, {e.add(firstRow, e.i32(8 * r))});
    for (Operation &nested : body.without_terminator())
      if ((r == 0 || dependences.get(nested) != kNothing) && failed(emitOp(nested)))
        return failure();
    for (auto [values, value] : llvm::zip(results, body.getTerminator()->getOperands()))
      values.push_back(lookupOne(value));
  }
  for (auto [result, values] : llvm::zip(op.getResults(), results))
    bind(result, values);
  return success();
}
