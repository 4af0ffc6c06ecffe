//===- Math.h - operators that are defined by others ------------------------------------------===//
//
// For handlers of ONNX operators that are formulas: operands broadcast like numpy's, numbers become
// constants of the other operand's type, reductions keep their dimensions. The handler has checked
// the shapes.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_OPERATORS_MATH_H
#define PARTITA_LIB_IMPORT_OPERATORS_MATH_H

#include "lib/Import/File/Node.h"

namespace partita::importer {

class Math {
public:
  explicit Math(Node &node) : node(node) {}

  mlir::Value add(mlir::Value a, mlir::Value b) { return apply<tx::AddOp>(a, b); }
  mlir::Value sub(mlir::Value a, mlir::Value b) { return apply<tx::SubOp>(a, b); }
  mlir::Value mul(mlir::Value a, mlir::Value b) { return apply<tx::MulOp>(a, b); }
  mlir::Value div(mlir::Value a, mlir::Value b) { return apply<tx::DivOp>(a, b); }
  mlir::Value add(mlir::Value a, double b) { return apply<tx::AddOp>(a, like(a, b)); }
  mlir::Value sub(mlir::Value a, double b) { return apply<tx::SubOp>(a, like(a, b)); }
  mlir::Value mul(mlir::Value a, double b) { return b == 1 ? a : apply<tx::MulOp>(a, like(a, b)); }
  mlir::Value div(mlir::Value a, double b) { return b == 1 ? a : apply<tx::DivOp>(a, like(a, b)); }

  template <typename Op> mlir::Value apply(mlir::Value a, mlir::Value b) {
    Shape shape = common({a, b});
    return node.emit<Op>({node.broadcast(a, shape), node.broadcast(b, shape)});
  }
  template <typename Op> mlir::Value apply(mlir::Value x) { return node.emit<Op>(x); }
  /// c ? a : b
  mlir::Value select(mlir::Value c, mlir::Value a, mlir::Value b);

  /// A constant of x's type.
  mlir::Value like(mlir::Value x, double value);
  mlir::Value constant(mlir::Type element, llvm::ArrayRef<int64_t> shape, double value);
  /// start, start + 1, ... along dimension `axis` of `shape`, in which the others are 1.
  mlir::Value iota(mlir::Type element, int64_t rank, int64_t axis, int64_t size, double start = 0,
                   double step = 1);
  mlir::Value cast(mlir::Value x, mlir::Type element);
  mlir::Type i64() { return node.builder().getI64Type(); }

  /// Reduces `axes`, which stay with size 1.
  template <typename Op> mlir::Value reduce(mlir::Value x, llvm::ArrayRef<int64_t> axes) {
    if (axes.empty())
      return x;
    Shape kept(shapeOf(x)), dropped;
    for (auto [i, dim] : llvm::enumerate(shapeOf(x)))
      if (llvm::is_contained(axes, static_cast<int64_t>(i)))
        kept[i] = 1;
      else
        dropped.push_back(dim);
    auto type = mlir::RankedTensorType::get(dropped, mlir::getElementTypeOrSelf(x.getType()));
    return node.reshape(Op::create(node.builder(), node.loc, type, x, axes), kept);
  }
  mlir::Value sum(mlir::Value x, llvm::ArrayRef<int64_t> axes) {
    return reduce<tx::ReduceSumOp>(x, axes);
  }
  mlir::Value mean(mlir::Value x, llvm::ArrayRef<int64_t> axes) {
    return reduce<tx::ReduceMeanOp>(x, axes);
  }
  mlir::Value max(mlir::Value x, llvm::ArrayRef<int64_t> axes) {
    return reduce<tx::ReduceMaxOp>(x, axes);
  }
  /// -max(-x): the dialect has no minimum over dimensions.
  mlir::Value min(mlir::Value x, llvm::ArrayRef<int64_t> axes);
  mlir::Value negate(mlir::Value x);
  /// log(sum(exp(x))): no overflow, and exact where the sum would underflow.
  mlir::Value logSumExp(mlir::Value x, llvm::ArrayRef<int64_t> axes);

  /// Reduces one axis, which stays with size 1, by halving: for what no kernel reduces.
  template <typename Op> mlir::Value halve(mlir::Value x, int64_t axis) {
    for (int64_t n = shapeOf(x)[axis]; n > 1; n = n / 2 + n % 2) {
      mlir::Value folded = node.emit<Op>({slice(x, axis, 0, n / 2), slice(x, axis, n / 2, n / 2)});
      x = n % 2 ? concat({folded, slice(x, axis, n - 1, 1)}, axis) : folded;
    }
    return x;
  }
  template <typename Op> mlir::Value halve(mlir::Value x, llvm::ArrayRef<int64_t> axes) {
    for (int64_t axis : axes)
      x = halve<Op>(x, axis);
    return x;
  }

  /// x with `axis` moved to the end, and back.
  mlir::Value axisToLast(mlir::Value x, int64_t axis);
  mlir::Value lastToAxis(mlir::Value x, int64_t axis);
  /// size elements of dimension `axis` from `offset` on, every `stride`-th.
  mlir::Value slice(mlir::Value x, int64_t axis, int64_t offset, int64_t size, int64_t stride = 1);
  mlir::Value concat(llvm::ArrayRef<mlir::Value> parts, int64_t axis);
  /// Zeros before and after along `axis`.
  mlir::Value padZero(mlir::Value x, int64_t axis, int64_t before, int64_t after);

private:
  static Shape common(llvm::ArrayRef<mlir::Value> values);

  Node &node;
};

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_OPERATORS_MATH_H
