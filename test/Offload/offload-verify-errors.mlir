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
  // expected-error@below {{'offload.to_host_start' op needs one wait in its block, for its token and all that it fills, and no other use of them}}
  %token, %buffer = offload.to_host_start %x : tensor<4xf32>
  %h = offload.wait %token, %x : tensor<4xf32>
  return %x : tensor<4xf32>
}

// -----

func.func @looks_too_early(%x: tensor<4xf32>) -> tensor<4xf32> {
  %h = offload.to_host %x : tensor<4xf32>
  // expected-error@below {{'offload.to_device_start' op needs one wait in its block, for its token and all that it fills, and no other use of them}}
  %token, %buffer = offload.to_device_start %h : tensor<4xf32>
  %y = tx.exp %buffer : (tensor<4xf32>) -> tensor<4xf32>
  %z = offload.wait %token, %buffer : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @states_on_the_device(%p: tensor<4xf32>, %g: tensor<4xf32>, %m: tensor<4xf32>, %v: tensor<4xf32>) {
  %rate = train.learning_rate : tensor<f32>
  %step = train.step_number : tensor<f32>
  // expected-error@below {{'train.adamw' op takes as operand 2 a value that is on the device; the host updates states that it keeps}}
  %new, %newM, %newV = train.adamw %p, %g, %m, %v, %rate, %step {offload.on_host, beta1 = 0.9, beta2 = 0.999, epsilon = 1.0e-8, decay = 0.0} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// Every copy has a size, which is announced.
func.func @of_any_size(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  // expected-error@below {{'offload.to_host' op operand #0 must be statically shaped tensor of integer or floating-point values, but got 'tensor<?x4xf32>'}}
  %h = offload.to_host %x : tensor<?x4xf32>
  %y = offload.to_device %h : tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}
