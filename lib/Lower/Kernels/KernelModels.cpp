//===- KernelModels.cpp - which op becomes which calls ----------------------------------------===//

#include "dialects/Amp/Amp.h"
#include "dialects/Offload/Offload.h"
#include "dialects/Par/Par.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "dialects/Zero/Zero.h"
#include "partita/Lower/Lowering.h"

using namespace mlir;
using namespace partita;

void rt::registerKernelModels(DialectRegistry &registry) {
  registry.addExtension(
      +[](MLIRContext *context, tx::TxDialect *, train::TrainDialect *, par::ParDialect *) {
        attachAttentionKernels(context);
        attachCollectives(context);
        attachElementwiseKernels(context);
        attachFusedMatmuls(context);
        attachGemmKernels(context);
        attachInitialValues(context);
        attachMovementKernels(context);
        attachOneBitSums(context);
        attachReductionKernels(context);
        attachRowKernels(context);
        attachScaledMatmuls(context);
        attachDropoutKernels(context);
        attachTokenKernels(context);
        attachUpdates(context);
      });
  // An extension waits for all its dialects: most programs have no shards.
  registry.addExtension(+[](MLIRContext *context, zero::ZeroDialect *) { attachShards(context); });
  registry.addExtension(
      +[](MLIRContext *context, offload::OffloadDialect *) { attachTransfers(context); });
  registry.addExtension(
      +[](MLIRContext *context, pipe::PipeDialect *) { attachMessages(context); });
  registry.addExtension(+[](MLIRContext *context, amp::AmpDialect *, tx::TxDialect *) {
    attachLossScale(context);
    attachQuantization(context);
  });
}
