// The entry of unit_tests: doctest's own main. Every other file of this folder registers test cases.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
