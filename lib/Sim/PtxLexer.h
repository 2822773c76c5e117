// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tokens of PTX text. A dotted name is several tokens: "mul.wide.u32" is the name "mul" and the
// dotted words ".wide" and ".u32"; "::" belongs to the word it stands in.
#ifndef ATTN_LIB_SIM_PTXLEXER_H
#define ATTN_LIB_SIM_PTXLEXER_H

#include <cstdint>
#include <string>
#include <string_view>

namespace attn::sim {

struct PtxToken {
  enum class Kind : uint8_t {
    End,
    Name,    ///< word, "%r1", "$L__BB0_1", "_"
    Dotted,  ///< ".wide", ".shared::cta", ".5d"; `text` without the first dot
    Integer, ///< `value`
    Float,   ///< `value`: bits, `width`: 32 or 64
    String,  ///< `text` without the quotes
    Punctuation,
    Bad, ///< `problem` says what it is
  };
  Kind kind = Kind::End;
  char punctuation = 0;
  int32_t line = 1;
  int32_t width = 0;
  uint64_t value = 0;
  std::string_view text; ///< as written
  const char *problem = "";

  bool is(char c) const { return kind == Kind::Punctuation && punctuation == c; }
  bool isName(std::string_view name) const { return kind == Kind::Name && text == name; }
  bool isDotted(std::string_view word) const { return kind == Kind::Dotted && text == word; }
  /// For messages: quoted, shortened, unprintable bytes escaped.
  std::string describe() const;
};

/// "'text'", shortened, unprintable bytes escaped.
std::string quotePtx(std::string_view text);

class PtxLexer {
public:
  explicit PtxLexer(std::string_view text) : text(text) {}
  PtxToken next();
  /// Drops the rest of the line that the last token began in.
  void skipLine();

private:
  PtxToken bad(const char *problem, size_t end);
  /// Skips blanks and comments; false at a comment without an end.
  bool skipBlanks();
  PtxToken take(PtxToken::Kind kind, size_t end);
  PtxToken name();
  PtxToken dotted();
  PtxToken string();
  PtxToken number();
  PtxToken floatBits(size_t digits);
  size_t wordEnd(size_t from) const;

  std::string_view text;
  size_t at = 0;
  int32_t line = 1;
};

} // namespace attn::sim

#endif // ATTN_LIB_SIM_PTXLEXER_H
