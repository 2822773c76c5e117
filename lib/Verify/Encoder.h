// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From a mask program to terms: wrapped integers for arithmetic, exact ones for named masks.
#ifndef ATTN_LIB_VERIFY_ENCODER_H
#define ATTN_LIB_VERIFY_ENCODER_H

#include "World.h"

#include "attn/Core/MaskProgramEmit.h"

#include <set>

namespace attn::proofs {

/// Operations that a query treats as functions of which nothing is known, by their key: the same
/// operation on the same operands gives the same value, in both masks.
class Unknowns {
public:
  explicit Unknowns(Terms &terms) : terms(terms) {}

  /// `name` is for people.
  Coded apply(const std::string &key, const std::string &name, core::ScalarType type,
              const std::vector<Coded> &operands);
  const std::set<std::string> &getNames() const { return names; }

private:
  Terms &terms;
  std::map<std::string, Term> functions;
  std::set<std::string> names;
};

/// Said of an operation that is not interpreted as the query has enough terms.
inline constexpr const char *kTooLarge = " (the question is too large already)";

class Encoder {
public:
  Encoder(Terms &terms, World &world, Unknowns &unknowns, const core::MaskProgram &program)
      : terms(terms), world(world), unknowns(unknowns), program(program),
        values(program.nodes.size()) {}

  /// The value of a node outside of loops.
  Coded encode(core::NodeId root);

private:
  const core::Node &node(core::NodeId id) const { return program.nodes[id]; }
  core::ScalarType typeOf(core::NodeId id) const { return node(id).type; }
  Coded operand(const core::Node &node, size_t i) const { return values[node.operands[i]]; }

  Coded encodeNode(core::NodeId id);
  Coded encodeConstant(const core::Node &node) const;
  Coded encodeLeaf(const core::Node &node);
  Coded encodeTable(const core::Node &node);
  Coded encodeNamed(const core::Node &node);
  Coded encodeInteger(const core::Node &node);
  Coded encodeBits(const core::Node &node, const Coded &a, const Coded &b);
  Coded maskBits(core::ScalarType type, const Coded &x, int64_t mask) const;
  Coded andOfBits(core::ScalarType type, const Coded &a, const Coded &b) const;
  Coded encodeShift(const core::Node &node, const Coded &a, const Coded &b);
  Coded shiftBy(const core::Node &node, const Coded &a, Wide amount);
  Coded encodeDivision(const core::Node &node, Coded a, Coded b);
  Coded encodeMinMax(const core::Node &node, const Coded &a, const Coded &b);
  Coded encodeProduct(core::ScalarType type, const Coded &a, const Coded &b);
  Term encodeCompare(const core::Node &node);
  Coded encodeCast(const core::Node &node);
  /// `why`: for people, after the name of the operation.
  Coded encodeUnknown(const core::Node &node, const std::string &why = "");

  void encodeLoop(core::NodeId id);
  std::vector<Coded> runBody(core::NodeId loop, const Coded &index,
                             const std::vector<Coded> &carried);
  bool unroll(core::NodeId id);
  bool quantify(core::NodeId id);
  bool mayRun(Wide times) const;
  std::string nameLoop(const core::Node &node) const;
  std::string describe(const core::Node &node) const;
  std::string serialize(core::NodeId loop, std::vector<core::NodeId> &outside) const;

  Coded boolean(Term term) const { return {term, 0, 1}; }
  Coded constant(Wide value) const { return {terms.integer(value), value, value}; }
  Coded select(Term condition, const Coded &a, const Coded &b) const;
  /// The two's complement value of an exact one.
  Coded wrap(core::ScalarType type, const Coded &exact) const;
  /// A Bool as 0 and 1, an integer as it is.
  Coded asNumber(core::ScalarType type, const Coded &value) const;
  /// As a signed (a set Bool is -1) and as an unsigned number.
  Coded asSigned(core::ScalarType type, const Coded &value) const;
  Coded asUnsigned(core::ScalarType type, const Coded &value) const;

  Terms &terms;
  World &world;
  Unknowns &unknowns;
  const core::MaskProgram &program;
  core::EmissionOrder order;
  std::vector<Coded> values;
  std::map<core::NodeId, std::vector<Coded>> results; ///< of loops
  Wide around = 1; ///< how often the body that is being encoded is, by the loops around it
};

} // namespace attn::proofs

#endif // ATTN_LIB_VERIFY_ENCODER_H
