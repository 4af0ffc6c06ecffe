// Memory of the host: its parameters and states apart from the device's, what is on its way in pinned memory, by lifetime.
// RUN: partita-opt %s --plan-memory | FileCheck %s

// CHECK: rt.host_bytes = 128 : i64
// CHECK-SAME: rt.pinned_bytes = 128 : i64
module {
  // CHECK: train.parameter @w : tensor<16xf32> {offload.host, rt.at = #rt.at<host 0>
  train.parameter @w : tensor<16xf32> {offload.host}
  // CHECK: train.parameter @b : tensor<16xf32> {rt.at = #rt.at<persistent 0>
  train.parameter @b : tensor<16xf32>
  // CHECK: train.state @b.m {{.*}} {offload.host, rt.at = #rt.at<host 64>
  train.state @b.m : tensor<16xf32> = 0.0 of @b "m"  {offload.host}

  // What a copy reads lives until its wait: %y does not take the place of %a, %z does. What goes to the host for good is put
  // where it belongs; two that wait there at once have places of their own.
  // CHECK-LABEL: func @forward
  // CHECK: tx.exp %arg0 {rt.buffers = [#rt.at<arena [[A:[0-9]+]]>]}
  // CHECK: offload.to_host_start %{{.*}} {rt.buffers = [#rt.at<pinned [[P:[0-9]+]]>]}
  // CHECK: tx.exp %{{.*}} {rt.buffers = [#rt.at<arena [[B:[0-9]+]]>]}
  // CHECK: offload.wait {{.*}} {rt.buffers = [#rt.at<pinned [[P]]>]}
  // CHECK: tx.exp %{{.*}} {rt.buffers = [#rt.at<arena {{[0-9]+}}>]}
  // CHECK: offload.to_host %{{.*}} {rt.buffers = [#rt.at<pinned {{[0-9]+}}>]}
  // CHECK: offload.to_device {{.*}} {rt.buffers = [#rt.at<arena {{[0-9]+}}>]}
  // CHECK: offload.to_host %{{.*}} {rt.buffers = [#rt.at<host 0>]}
  func.func @forward(%x: tensor<16xf32>) -> tensor<16xf32> attributes {train.entry_point = #train.entry_point<forward>} {
    %a = tx.exp %x : (tensor<16xf32>) -> tensor<16xf32>
    %token, %buffer = offload.to_host_start %a : tensor<16xf32>
    %y = tx.exp %a : (tensor<16xf32>) -> tensor<16xf32>
    %h = offload.wait %token, %buffer : tensor<16xf32>
    %z = tx.exp %y : (tensor<16xf32>) -> tensor<16xf32>
    %k = offload.to_host %z : tensor<16xf32>
    %0 = offload.to_device %h : tensor<16xf32>
    %1 = offload.to_device %k : tensor<16xf32>
    %2 = tx.add %0, %1 : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    %new = offload.to_host %2 : tensor<16xf32>
    train.write @w, %new : tensor<16xf32>
    return %2 : tensor<16xf32>
  }
}
