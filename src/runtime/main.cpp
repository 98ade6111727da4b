// The entry of a built executable. In an object file of its own: a program that has a main already (the compiler, the tests) does not pull it in.
#include "runtime/abi.h"

extern "C" const BendProgram bend_program;

int main(int argc, char** argv) { return bend_start(&bend_program, nullptr, argc, argv); }
