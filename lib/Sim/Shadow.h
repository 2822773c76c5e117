// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is remembered of shared memory to find hazards. A granule (4 bytes, or 1 in kernels with
// narrow accesses) has the last write and the reads since. Both are numbers of sets of accesses
// that granules share: an operation walks a whole tile and finds the same two numbers nearly
// everywhere, so the question whether it is ordered is answered once.
//
// An asynchronous operation enters when it is issued, whenever it takes effect: everything ordered
// before it has run by then, everything ordered after it has not, and what is neither is a hazard
// on either side.
//
// A store that changes no byte is no conflict: two warps may clear the same rows. It joins the
// writers, so that a reader ordered after any of them is fine.
#ifndef ATTN_SIM_SHADOW_H
#define ATTN_SIM_SHADOW_H

#include "Clock.h"

#include "attn/Sim/Sim.h"

#include <cstdint>
#include <string>
#include <vector>

namespace attn::sim {

struct Cta;

struct Access {
  /// Loaded: a load that may have read as late as this, where its registers were used. That matters
  /// to copies alone: all else comes after it in the pipe of shared memory.
  enum class What : uint8_t { Plain, Loaded, CpAsync, Copy, Product, BulkStore, Object };
  uint32_t agent = 0;
  uint32_t time = 0; ///< the access happens before whatever knows this time of the agent
  int32_t line = 0;
  uint8_t warp = 0;
  uint8_t rank = 0; ///< of the CTA of the warp
  What what = What::Plain;
  bool strong = false; ///< atomic or volatile: does not race with its like

  bool asyncProxy() const {
    return what == What::Copy || what == What::Product || what == What::BulkStore;
  }
  bool asynchronous() const { return asyncProxy() || what == What::CpAsync; }
  bool operator==(const Access &o) const {
    return agent == o.agent && time == o.time && line == o.line && what == o.what &&
           strong == o.strong;
  }
};

class Shadow {
public:
  Shadow(uint32_t bytes, unsigned shift) : shift(shift), cells((bytes >> shift) + 1) {
    sets.emplace_back();
  }

  /// The accesses that follow are of `self`, whose past is `clock`; `proxy`: generic writes that a
  /// proxy fence has shown to asynchronous operations.
  void begin(const Access &self, const Clock &clock, const Clock &proxy);
  /// Offsets are bytes from the start of shared memory.
  void read(Cta &cta, uint32_t offset, uint32_t bytes);
  void write(Cta &cta, uint32_t offset, uint32_t bytes);
  /// A load that read() has seen is over.
  void loaded(Cta &cta, uint32_t offset, uint32_t bytes);
  /// A store of the bytes that are there.
  void writeSame(Cta &cta, uint32_t offset, uint32_t bytes);
  /// Self is the last that wrote, without question.
  void claim(uint32_t offset, uint32_t bytes);

private:
  struct Cell {
    uint32_t writers = 0; ///< 0: nobody wrote this
    uint32_t readers = 0;
  };
  /// What the access of `self` makes of a cell.
  struct Verdict {
    Cell before, after;
    bool valid = false;
  };
  enum Mode { Read, Late, Write, Same, kNumModes };

  template <Mode mode>
  void walk(Cta &cta, uint32_t offset, uint32_t bytes);
  Cell judge(Cta &cta, Mode mode, Cell before, uint32_t offset);
  void checkWriters(Cta &cta, Mode mode, uint32_t set, uint32_t offset);
  void checkReaders(Cta &cta, uint32_t set, uint32_t offset);
  void checkLoaded(Cta &cta, uint32_t set, uint32_t offset);
  bool ordered(const Access &earlier) const { return clock->get(earlier.agent) >= earlier.time; }
  bool fenced(const Access &earlier) const;
  /// The set `id` with self, without what self makes superfluous.
  uint32_t with(uint32_t id, bool keepOrdered);
  void compact();

  unsigned shift;
  std::vector<Cell> cells;
  std::vector<std::vector<Access>> sets;
  Access self;
  const Clock *clock = nullptr, *proxy = nullptr;
  uint32_t alone = 0; ///< set of self only, or 0
  static constexpr int kWays = 8;
  Verdict known[kNumModes][kWays];
  int next[kNumModes] = {};
};

/// What a report says of a copy over the bytes of a load under way.
std::string lateLoadText(const Cta &cta, const Access &copy, const Access &load, uint32_t offset);

} // namespace attn::sim

#endif // ATTN_SIM_SHADOW_H
