# Which nvcc, for what, linked with what: included by the Makefiles of the runtime and of emitted programs.
ARCH ?= sm_90
NVCC ?= $(firstword $(wildcard $(CUDA_HOME)/bin/nvcc) $(shell command -v nvcc) $(wildcard /usr/local/cuda/bin/nvcc))
ifeq ($(NVCC),)
$(error nvcc is neither in CUDA_HOME nor in the PATH nor in /usr/local/cuda; set NVCC)
endif
# 1675: what is for g++ alone (GCC optimize) is no news
NVCCFLAGS = -std=c++17 -O3 -arch=$(ARCH) -DPARTITA_RT_ARCH='"$(ARCH)"' -diag-suppress=1675 -Xcompiler -Wall,-Wno-unknown-pragmas
CUDA_LIBS = -lcublasLt -lnccl -lpthread
