//===- Einsum.cpp - sums of products by letters -----------------------------------------------===//
//
// Operands are joined from left to right. A letter that neither a later operand nor the result has
// is summed over as soon as possible: if one operand has it, by a reduction; if both have it, by a
// matmul, whose batch is the letters that both have and that stay.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Import/Operators/Math.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace partita::importer {
namespace {

/// A value and the letters of its dimensions, no letter twice.
struct Term {
  Value value;
  std::string letters;

  int64_t dim(char letter) const { return letters.find(letter); }
  bool has(char letter) const { return letters.find(letter) != std::string::npos; }
  int64_t size(char letter) const { return shapeOf(value)[dim(letter)]; }
};

/// The letters of `text`, where "..." stands for the last of the digits that number its dimensions.
FailureOr<std::string> lettersOf(Node &node, llvm::StringRef text, int64_t ellipsis) {
  std::string letters;
  bool seen = false;
  while (!text.empty()) {
    if (text.consume_front("...") && !seen) {
      seen = true;
      for (int64_t i = ellipsis; i-- > 0;)
        letters.push_back(static_cast<char>('0' + i));
    } else if (!text.empty() && llvm::isAlpha(text[0])) {
      letters.push_back(text[0]);
      text = text.drop_front();
    } else {
      return FailureOr<std::string>(node.error() << "attribute 'equation' has a term that cannot "
                                                    "be read, at "
                                                 << quoted(text));
    }
  }
  return letters;
}

/// Keeps, of two dimensions with one letter, the diagonal.
void takeDiagonals(Node &node, Term &term) {
  Math m(node);
  for (size_t j = 0; j < term.letters.size(); ++j) {
    size_t i = term.letters.find(term.letters[j]);
    if (i == j)
      continue;
    Shape shape(shapeOf(term.value));
    Value row = m.iota(m.i64(), shape.size(), i, shape[i]);
    Value column = m.iota(m.i64(), shape.size(), j, shape[j]);
    Value diagonal = m.select(m.apply<tx::EqualOp>(row, column), term.value, m.like(term.value, 0));
    shape.erase(shape.begin() + j);
    term.value = node.reshape(m.halve<tx::AddOp>(diagonal, j), shape);
    term.letters.erase(j--, 1);
  }
}

bool isReal(Value value) { return isa<FloatType>(getElementTypeOrSelf(value.getType())); }

/// Sums away the letters of `term` that are not in `needed`.
void sumAway(Node &node, Term &term, llvm::StringRef needed) {
  Math m(node);
  Shape axes, shape;
  std::string left;
  for (auto [i, letter] : llvm::enumerate(term.letters)) {
    if (needed.contains(letter)) {
      left.push_back(letter);
      shape.push_back(shapeOf(term.value)[i]);
    } else {
      axes.push_back(i);
    }
  }
  if (axes.empty())
    return;
  Value sum = isReal(term.value) ? m.sum(term.value, axes) : m.halve<tx::AddOp>(term.value, axes);
  term = {node.reshape(sum, shape), left};
}

/// The dimensions of `term` in the order of `letters`; those it lacks have size 1.
Value arranged(Node &node, const Term &term, llvm::StringRef letters) {
  Shape permutation, shape;
  for (char letter : letters) {
    if (term.has(letter))
      permutation.push_back(term.dim(letter));
    shape.push_back(term.has(letter) ? term.size(letter) : 1);
  }
  return node.reshape(node.transpose(term.value, permutation), shape);
}

int64_t product(const Term &term, llvm::StringRef letters) {
  int64_t count = 1;
  for (char letter : letters)
    count *= term.size(letter);
  return count;
}

/// The product of two terms, summed over the letters that are not `needed`.
Term join(Node &node, Term a, Term b, llvm::StringRef needed) {
  Math m(node);
  sumAway(node, a, (needed + b.letters).str());
  sumAway(node, b, (needed + a.letters).str());
  std::string batch, rows, inner, columns;
  bool repeats = false; // a letter of size 1 on one side only
  for (char letter : a.letters) {
    (!b.has(letter) ? rows : needed.contains(letter) ? batch : inner).push_back(letter);
    repeats |= b.has(letter) && a.size(letter) != b.size(letter);
  }
  for (char letter : b.letters)
    if (!a.has(letter))
      columns.push_back(letter);
  std::string result = batch + rows + columns;
  if (inner.empty() || repeats || !isReal(a.value)) {
    std::string all = result + inner;
    Term full{m.mul(arranged(node, a, all), arranged(node, b, all)), all};
    sumAway(node, full, result);
    return full;
  }
  auto matrix = [&](const Term &term, llvm::StringRef outer, llvm::StringRef first,
                    llvm::StringRef second) {
    Shape shape;
    for (char letter : outer)
      shape.push_back(term.size(letter));
    shape.append({product(term, first), product(term, second)});
    return node.reshape(arranged(node, term, (outer + first + second).str()), shape);
  };
  Shape shape;
  for (char letter : result)
    shape.push_back(a.has(letter) ? a.size(letter) : b.size(letter));
  Value left = matrix(a, batch, rows, inner), right = matrix(b, batch, inner, columns);
  Value value = batch.empty() ? node.emit<tx::MatMulOp>({left, right})
                              : node.emit<tx::BatchMatMulOp>({left, right});
  return {node.reshape(value, shape), result};
}

/// "ij,jk" -> "ik": letters that stand once, in alphabetical order, after the ellipsis.
std::string implicitResult(llvm::ArrayRef<Term> terms) {
  std::string once;
  for (int letter = '0'; letter <= 'z'; ++letter) {
    size_t count = 0;
    for (const Term &term : terms)
      count += llvm::count(term.letters, static_cast<char>(letter));
    if (count == 1 || (count > 1 && llvm::isDigit(static_cast<char>(letter))))
      once.push_back(static_cast<char>(letter));
  }
  size_t digits = llvm::count_if(once, [](char c) { return llvm::isDigit(c); });
  std::reverse(once.begin(), once.begin() + digits);
  return once;
}

/// Each operand's value and letters.
LogicalResult readTerms(Node &node, llvm::ArrayRef<llvm::StringRef> texts,
                        llvm::SmallVectorImpl<Term> &terms, int64_t &ellipsis) {
  ellipsis = 0;
  for (auto [i, text] : llvm::enumerate(texts)) {
    Tensor *x = node.input(i);
    if (!x || x->type != node.input(0)->type || x->type == DType::boolean)
      return node.error() << "input " << i << " is missing or of another type than input 0";
    if (failed(node.emittable(x)))
      return failure();
    int64_t named = llvm::count_if(text, [](char c) { return llvm::isAlpha(c); });
    int64_t rest = static_cast<int64_t>(x->shape.size()) - named;
    bool hasEllipsis = text.contains("...");
    FailureOr<std::string> letters =
        lettersOf(node, text, hasEllipsis ? std::max<int64_t>(rest, 0) : 0);
    if (failed(letters))
      return failure();
    if (letters->size() != x->shape.size() || rest > 10)
      return node.error() << "input " << i << " is " << typeText(*x) << ", which " << quoted(text)
                          << " does not name";
    ellipsis = std::max(ellipsis, hasEllipsis ? rest : 0);
    terms.push_back({node.value(x), *letters});
  }
  return success();
}

/// One size for every letter, 1 aside; no result of a step too large.
LogicalResult checkSizes(Node &node, llvm::ArrayRef<Term> terms, llvm::StringRef result) {
  std::map<char, int64_t> sizes;
  for (const Term &term : terms)
    for (auto [letter, size] : llvm::zip_equal(term.letters, shapeOf(term.value))) {
      int64_t &known = sizes.emplace(letter, 1).first->second;
      if (known != 1 && size != 1 && known != size)
        return node.error() << "letter '" << std::string(1, letter) << "' has sizes " << known
                            << " and " << size;
      known = std::max(known, size);
    }
  Shape all;
  for (auto [letter, size] : sizes)
    all.push_back(size);
  if (!elementCount(all))
    return node.error() << "multiplies " << shapeText(all) << " numbers, which is too many";
  for (auto [i, letter] : llvm::enumerate(result))
    if (!sizes.count(letter) || result.find(letter) != i)
      return node.error() << "yields letter '" << std::string(1, letter)
                          << "', which no operand has or which it yields twice";
  return success();
}

LogicalResult einsum(Node &node) {
  std::string equation;
  if (failed(node.arity(1, anyLater)) || failed(node.attribute("equation", equation)))
    return failure();
  llvm::erase_if(equation, [](char c) { return c == ' '; });
  auto [left, right] = llvm::StringRef(equation).split("->");
  llvm::SmallVector<llvm::StringRef> texts;
  left.split(texts, ',');
  if (static_cast<int64_t>(texts.size()) != node.inputCount())
    return node.error() << "attribute 'equation' names " << texts.size() << " operands, it has "
                        << node.inputCount();
  llvm::SmallVector<Term> terms;
  int64_t ellipsis;
  if (failed(readTerms(node, texts, terms, ellipsis)))
    return failure();
  FailureOr<std::string> result = implicitResult(terms);
  if (llvm::StringRef(equation).contains("->"))
    result = lettersOf(node, right, ellipsis);
  if (failed(result) || failed(checkSizes(node, terms, *result)))
    return failure();
  for (Term &term : terms)
    takeDiagonals(node, term);
  Term all = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) {
    std::string needed = *result;
    for (const Term &later : llvm::ArrayRef<Term>(terms).drop_front(i + 1))
      needed += later.letters;
    all = join(node, all, terms[i], needed);
  }
  sumAway(node, all, *result);
  return node.set(0, arranged(node, all, *result));
}

const OpRow einsumRows[] = {
    {"Einsum", "", 12, anyLater, einsum, OpEffect::Contracts},
};

} // namespace

llvm::ArrayRef<OpRow> einsumOps() { return einsumRows; }

} // namespace partita::importer
