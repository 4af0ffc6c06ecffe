//===- Matmuls.cpp - kernels of matmuls -------------------------------------------------------===//

#include "dialects/Tx/Tx.h"
#include "lib/Interp/Execution.h"

using namespace mlir;
using namespace partita;
using namespace partita::interp;

/// Four rows of c and a strip of columns at a time, so that each row of b is read once for all
/// four. Each element adds its k products in order. Wider vectors where the processor has them, but
/// no fused multiply-add: the same bits everywhere.
[[gnu::target_clones("avx2", "default")]] void
partita::interp::multiplyAdd(const double *__restrict a, const double *__restrict b,
                             double *__restrict c, int64_t m, int64_t k, int64_t n) {
  constexpr int64_t strip = 256;
  for (int64_t j0 = 0; j0 < n; j0 += strip) {
    int64_t width = std::min(strip, n - j0);
    int64_t i = 0;
    for (; i + 4 <= m; i += 4) {
      double *__restrict c0 = c + i * n + j0, *__restrict c1 = c0 + n;
      double *__restrict c2 = c1 + n, *__restrict c3 = c2 + n;
      for (int64_t p = 0; p < k; ++p) {
        const double *row = b + p * n + j0;
        double a0 = a[i * k + p], a1 = a[(i + 1) * k + p], a2 = a[(i + 2) * k + p],
               a3 = a[(i + 3) * k + p];
        for (int64_t j = 0; j < width; ++j) {
          double x = row[j];
          c0[j] += a0 * x;
          c1[j] += a1 * x;
          c2[j] += a2 * x;
          c3[j] += a3 * x;
        }
      }
    }
    for (; i < m; ++i)
      for (int64_t p = 0; p < k; ++p)
        for (int64_t j = 0; j < width; ++j)
          c[i * n + j0 + j] += a[i * k + p] * b[p * n + j0 + j];
  }
}

std::vector<double> partita::interp::transposed(const double *a, int64_t m, int64_t n) {
  std::vector<double> result(m * n);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      result[j * m + i] = a[i * n + j];
  return result;
}

static LogicalResult matmul(tx::MatMulOp, Inputs in, Outputs out) {
  multiplyAdd(in[0]->reals.data(), in[1]->reals.data(), out[0].reals.data(), in[0]->leading(1),
              in[0]->dim(-1), in[1]->dim(-1));
  return success();
}

static LogicalResult matmulNT(tx::MatMulNTOp, Inputs in, Outputs out) {
  int64_t n = in[1]->dim(0), k = in[1]->dim(1);
  std::vector<double> b = transposed(in[1]->reals.data(), n, k);
  multiplyAdd(in[0]->reals.data(), b.data(), out[0].reals.data(), in[0]->leading(1), k, n);
  return success();
}

static LogicalResult matmulTN(tx::MatMulTNOp, Inputs in, Outputs out) {
  int64_t rows = in[0]->leading(1), k = in[0]->dim(-1), n = in[1]->dim(-1);
  std::vector<double> a = transposed(in[0]->reals.data(), rows, k);
  multiplyAdd(a.data(), in[1]->reals.data(), out[0].reals.data(), k, rows, n);
  return success();
}

/// As matmulTN of the operands' transposes: what is summed over is contiguous in both.
static LogicalResult matmulColumns(tx::ScaledMatMulColumnsOp, Inputs in, Outputs out) {
  int64_t k = in[0]->dim(0), n = in[1]->dim(0), rows = in[0]->size() / std::max<int64_t>(k, 1);
  std::vector<double> b = transposed(in[1]->reals.data(), n, rows);
  multiplyAdd(in[0]->reals.data(), b.data(), out[0].reals.data(), k, rows, n);
  return success();
}

static LogicalResult batchMatmul(tx::BatchMatMulOp, Inputs in, Outputs out) {
  int64_t m = in[0]->dim(-2), k = in[0]->dim(-1), n = in[1]->dim(-1);
  for (int64_t i = 0; i < in[0]->leading(2); ++i)
    multiplyAdd(in[0]->reals.data() + i * m * k, in[1]->reals.data() + i * k * n,
                out[0].reals.data() + i * m * n, m, k, n);
  return success();
}

/// Adds the bias to every row.
static void addBias(const Tensor &bias, Tensor &out) {
  int64_t n = bias.dim(0);
  for (size_t i = 0; i < out.reals.size(); ++i)
    out.reals[i] += bias.reals[i % n];
}

static LogicalResult matmulBias(tx::MatMulBiasOp, Inputs in, Outputs out) {
  LogicalResult done = matmul({}, in.take_front(2), out);
  addBias(*in[2], out[0]);
  return done;
}

static LogicalResult matmulNTBias(tx::MatMulNTBiasOp, Inputs in, Outputs out) {
  LogicalResult done = matmulNT({}, in.take_front(2), out);
  addBias(*in[2], out[0]);
  return done;
}

/// Multiplies what `kernel`, of the op without scales, makes of the stored numbers.
template <auto kernel, typename Op> static LogicalResult scaled(Op op, Inputs in, Outputs out) {
  LogicalResult done = kernel({}, in.take_front(2), out);
  int64_t width = tx::scaleWidth(op.getScales());
  double scale = in[2]->number(op.getNumberA() * width) * in[2]->number(op.getNumberB() * width);
  for (double &number : out[0].reals)
    number *= scale;
  return done;
}

/// The same, and a bias that has no scale.
template <auto kernel, typename Op> static LogicalResult scaledBias(Op op, Inputs in, Outputs out) {
  LogicalResult done = scaled<kernel>(op, in, out);
  addBias(*in[3], out[0]);
  return done;
}

void partita::interp::addMatmulKernels(KernelTable &table) {
  table.add<tx::MatMulOp>(matmul);
  table.add<tx::MatMulNTOp>(matmulNT);
  table.add<tx::MatMulTNOp>(matmulTN);
  table.add<tx::BatchMatMulOp>(batchMatmul);
  table.add<tx::MatMulBiasOp>(matmulBias);
  table.add<tx::MatMulNTBiasOp>(matmulNTBias);
  table.add<tx::ScaledMatMulOp>(scaled<matmul, tx::ScaledMatMulOp>);
  table.add<tx::ScaledMatMulNTOp>(scaled<matmulNT, tx::ScaledMatMulNTOp>);
  table.add<tx::ScaledMatMulTNOp>(scaled<matmulTN, tx::ScaledMatMulTNOp>);
  table.add<tx::ScaledMatMulColumnsOp>(scaled<matmulColumns, tx::ScaledMatMulColumnsOp>);
  table.add<tx::ScaledMatMulBiasOp>(scaledBias<matmul, tx::ScaledMatMulBiasOp>);
  table.add<tx::ScaledMatMulNTBiasOp>(scaledBias<matmulNT, tx::ScaledMatMulNTBiasOp>);
}
