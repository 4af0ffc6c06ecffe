# Which nvcc, for what, linked with what: included by the Makefiles of the runtime and of emitted programs.
ARCH ?= sm_90
# A CUDA that is asked for is that one, or none.
ifneq ($(CUDA_HOME),)
NVCC ?= $(or $(wildcard $(CUDA_HOME)/bin/nvcc),$(error CUDA_HOME is $(CUDA_HOME), which has no bin/nvcc; set it to CUDA's folder, or leave it unset for the nvcc of the PATH))
else
NVCC ?= $(firstword $(shell command -v nvcc) $(wildcard /usr/local/cuda/bin/nvcc))
endif
ifeq ($(NVCC),)
$(error nvcc is neither in the PATH nor in /usr/local/cuda; set CUDA_HOME, or NVCC)
endif
# 1675: what is for g++ alone (GCC optimize) is no news
NVCCFLAGS = -std=c++17 -O3 -arch=$(ARCH) -DPARTITA_RT_ARCH='"$(ARCH)"' -diag-suppress=1675 -Xcompiler -Wall,-Wno-unknown-pragmas
CUDA_LIBS = -lcublasLt -lnccl -lpthread -ldl
