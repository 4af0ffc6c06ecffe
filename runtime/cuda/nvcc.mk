# The choice of nvcc, its flags and libraries: included by the Makefiles of the runtime and of emitted programs.
ARCH ?= sm_90
# If a CUDA is requested, only that one is used.
ifneq ($(CUDA_HOME),)
NVCC ?= $(or $(wildcard $(CUDA_HOME)/bin/nvcc),$(error CUDA_HOME is $(CUDA_HOME), which has no bin/nvcc; set it to CUDA's folder, or leave it unset for the nvcc of the PATH))
else
NVCC ?= $(firstword $(shell command -v nvcc) $(wildcard /usr/local/cuda/bin/nvcc))
endif
ifeq ($(NVCC),)
$(error nvcc is neither in the PATH nor in /usr/local/cuda; set CUDA_HOME, or NVCC)
endif
ifeq ($(shell command -v $(firstword $(NVCC))),)
$(error NVCC is $(firstword $(NVCC)), which cannot be run)
endif
ifeq ($(filter sm_8% sm_9% sm_10% sm_11% sm_12%,$(ARCH)),)
$(error ARCH is $(ARCH); the kernels are for compute capability 8.0 and later: sm_80, sm_89, sm_90, sm_100, ...)
endif
# Sources with Hopper-only instructions are compiled for sm_90a; for other GPUs they compile to nothing. This is stated only
# here: everything that needs these kernels builds them with this file.
comma := ,
TARGET = $(if $(and $(filter sm_90 sm_90a,$(ARCH)),$(findstring _wgmma_,$<)),-gencode arch=compute_90a$(comma)code=sm_90a -DPARTITA_RT_SM90A,-arch=$(ARCH))
# 1675: a pragma for g++ only (GCC optimize)
NVCCFLAGS = -std=c++17 -O3 $(TARGET) -DPARTITA_RT_ARCH='"$(ARCH)"' -diag-suppress=1675 -Xcompiler -Wall,-Wno-unknown-pragmas $(LIBRARY_INCLUDES)
CUDA_LIBS = $(CUBLAS_LIBS) $(NCCL_LIBS) $(CUDNN_LIBS) -lpthread -ldl

# cuBLASLt, NCCL and cuDNN are where nvcc looks, or in CUBLAS_HOME, NCCL_HOME and CUDNN_HOME: folders with include/ and lib/, as
# Python's wheels have (nvidia/cu13, nvidia/nccl, nvidia/cudnn, with libraries under versioned names only). Programs find
# them there again. The wheel of cuBLASLt has all of CUDA's headers, so nvcc's own come first.
library = $(firstword $(wildcard $(foreach lib,lib lib64,$1/$(lib)/$2.so $1/$(lib)/$2.so.*)))
home = $(or $(and $(wildcard $($1)/include/$2),$(call library,$($1),$3)),$(error $1 is $($1), which has no include/$2 or no lib/$3.so; set it to a folder with both, or leave it unset for where nvcc looks))
LIBRARY_INCLUDES = $(addprefix -I,$(addsuffix /include,$(NCCL_HOME) $(CUDNN_HOME))) $(addprefix -isystem ,$(addsuffix /include,$(CUBLAS_HOME)))
CUBLAS_LIBS = -lcublasLt
ifneq ($(CUBLAS_HOME),)
CUBLAS_FILE := $(call home,CUBLAS_HOME,cublasLt.h,libcublasLt)
CUBLAS_LIBS = -L$(dir $(CUBLAS_FILE)) -l:$(notdir $(CUBLAS_FILE)) -Xlinker -rpath=$(dir $(CUBLAS_FILE))
endif
NCCL_LIBS = -lnccl
ifneq ($(NCCL_HOME),)
NCCL_FILE := $(call home,NCCL_HOME,nccl.h,libnccl)
NCCL_LIBS = -L$(dir $(NCCL_FILE)) -l:$(notdir $(NCCL_FILE)) -Xlinker -rpath=$(dir $(NCCL_FILE))
endif
# The program itself loads cuDNN, if it wants it.
ifneq ($(CUDNN_HOME),)
CUDNN_LIBS = -Xlinker -rpath=$(dir $(call home,CUDNN_HOME,cudnn_graph.h,libcudnn))
endif
