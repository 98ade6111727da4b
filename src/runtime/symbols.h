// C prototypes of the functions listed in abi.def and effects.def, as generated code calls them. Pointers that abi.def writes as p are typed here.
#pragma once
#include "runtime/abi.h"

extern "C" {
void* bend_alloc_slow(BendWorker* worker, uint64_t bytes);
void* bend_alloc_large(BendWorker* worker, uint64_t bytes);
void bend_free_large(BendWorker* worker, void* node, uint64_t bytes);
void bend_drop_ref(BendWorker* worker, BendWord ref, const BendDataInfo* info);
void bend_drop_fields(BendWorker* worker, BendWord ref, const BendDataInfo* info, uint32_t ctor);
void bend_drop_array(BendWorker* worker, BendWord array, const BendLayout* element);
void bend_drop_object(BendWorker* worker, BendWord object);
void bend_dup_object(BendWorker* worker, BendWord object);
BendWord bend_array_alloc(BendWorker* worker, uint64_t depth, const BendLayout* element, const char* site);
BendWord bend_array_clone(BendWorker* worker, BendWord array, const BendLayout* element);
void bend_array_split(BendWorker* worker, BendWord array, const BendLayout* element, BendWord* halves, const char* site);
BendWord bend_array_node(BendWorker* worker, BendWord low, BendWord high, const BendLayout* element, const char* site);
void bend_array_release(BendWorker* worker, BendWord array, const BendLayout* element);
uint32_t bend_gpu_call(BendWorker* worker, const BendGpuEntry* entry, void* payload, void* result);
void bend_emulated_exit(void* control) __attribute__((noreturn));
void bend_fail(BendWorker* worker, uint32_t number, const char* site) __attribute__((noreturn));
uint64_t bend_fork(BendWorker* worker, uint32_t site);
void bend_fork_end(BendWorker* worker, uint32_t site, uint64_t token);
uint32_t bend_join(BendWorker* worker, void* task);
BendWord bend_string_literal(BendWorker* worker, const uint32_t* code_points, uint64_t count);
void bend_fill_strings(BendWorker* worker, void* nodes, const void* codes, uint32_t width, const uint64_t* ends, uint64_t count);
void bend_show_text(BendWorker* worker, const char* bytes, uint64_t size);
void bend_show_u32(BendWorker* worker, uint32_t value);
void bend_show_nat(BendWorker* worker, uint64_t value);
void bend_show_f32(BendWorker* worker, float value);
void bend_show_char(BendWorker* worker, uint32_t code_point);
void bend_show_string(BendWorker* worker, BendWord string);
BendWord bend_f32_show(BendWorker* worker, float value);
uint64_t bend_f32_read(BendWorker* worker, BendWord string);

#define BENDC_EFFECT(name) int bend_eff_##name(BendWorker* worker, struct BendTask* task, void* payload, void* answer);
#include "runtime/effects.def"
#undef BENDC_EFFECT
}
