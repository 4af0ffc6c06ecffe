// RUN: partita-opt %s --offload-verify --split-input-file --verify-diagnostics

train.parameter @w : tensor<4xf32> {offload.host}
func.func @computes(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note@below {{it comes from here}}
  %h = train.read @w : tensor<4xf32>
  // expected-error@below {{'tx.mul' op takes as operand 1 a value that is on the host; it needs an offload.to_device}}
  %y = tx.mul %x, %h : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

train.parameter @w : tensor<4xf32> {offload.host}
func.func @writes(%x: tensor<4xf32>) {
  // expected-error@below {{'train.write' op takes as operand 0 a value on the device to what lives on the host}}
  train.write @w, %x : tensor<4xf32>
  return
}

// -----

func.func @copies_twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note@below {{it comes from here}}
  %h = offload.to_host %x : tensor<4xf32>
  // expected-error@below {{'offload.to_host' op takes as operand 0 a value that is on the host already}}
  %again = offload.to_host %h : tensor<4xf32>
  %y = offload.to_device %again : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @is_there(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@below {{'offload.to_device' op takes as operand 0 a value that is on the device already}}
  %y = offload.to_device %x : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @wrong_wait(%x: tensor<4xf32>) -> tensor<4xf32> {
  %token, %buffer = offload.to_host_start %x : tensor<4xf32>
  // expected-error@below {{'offload.wait' op must name what its copy fills}}
  %h = offload.wait %token, %x : tensor<4xf32>
  return %x : tensor<4xf32>
}
