/* The examination of `bendc doctor` as a program of its own, for machines where bendc cannot be installed. */
#include "runtime/abi.h"

int main(void) { return bend_gpu_doctor(0); }
