/* Stands for OpenBLAS where CUDA programs are carried to a machine without it: their host computes no product. */
#include <stdio.h>
#include <stdlib.h>

void cblas_sgemm(void);
void cblas_sgemm(void) {
  fputs("no_blas: the host was asked for a matrix product\n", stderr);
  abort();
}
