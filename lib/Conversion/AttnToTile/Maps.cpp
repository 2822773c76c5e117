// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Maps.h"

using namespace mlir;
using namespace attn;

static Type scalarOf(Type type) {
  if (auto fragment = dyn_cast<tile::FragmentType>(type))
    return fragment.getElement();
  if (auto rows = dyn_cast<tile::RowsType>(type))
    return rows.getElement();
  return IntegerType::get(type.getContext(), 1);
}

/// A map over elements or rows; `body` gets the region's arguments and gives the results.
template <class Map>
static SmallVector<Value> emitMap(OpBuilder &builder, Location loc, TypeRange results,
                                  ValueRange inputs, unsigned positions, MapBody body) {
  auto map = Map::create(builder, loc, results, inputs);
  SmallVector<Type> types;
  for (Value input : inputs)
    types.push_back(scalarOf(input.getType()));
  types.append(positions, builder.getI32Type());
  OpBuilder::InsertionGuard guard(builder);
  Block *block =
      builder.createBlock(&map.getBody(), {}, types, SmallVector<Location>(types.size(), loc));
  tile::YieldOp::create(builder, loc, body(builder, block->getArguments()));
  return SmallVector<Value>(map.getResults());
}

SmallVector<Value> attn::mapElements(OpBuilder &builder, Location loc, TypeRange results,
                                     ValueRange inputs, MapBody body) {
  return emitMap<tile::MapOp>(builder, loc, results, inputs, /*positions=*/2, body);
}

SmallVector<Value> attn::mapRows(OpBuilder &builder, Location loc, TypeRange results,
                                 ValueRange inputs, MapBody body) {
  return emitMap<tile::MapRowsOp>(builder, loc, results, inputs, /*positions=*/1, body);
}
