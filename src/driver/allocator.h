// How malloc treats what the compiler frees. A compilation grows tables by doubling and drops whole forms of the program, phase after phase:
// memory that went back to the system each time would come back as fresh pages, and a fresh page costs more than what is written into it.
#pragma once

namespace bendc {

// Freed memory stays with the process. Before any thread is started.
void keep_freed_memory();

// Hands the free pages back: the compilation is over and the program starts.
void give_freed_memory_back();

}  // namespace bendc
