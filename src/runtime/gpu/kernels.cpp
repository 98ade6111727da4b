// bend_flip(control): one thread, between two rounds; the offsets are those of BendDeviceControl (a unit test compares). The same steps in C++ stand in
// flip() of rounds.h, which the emulator runs.
// bend_diff(heap, shadow, flags): a block of 128 threads compares a page of 64 KiB with its shadow; where they differ the shadow is made equal and the
// page's flag 1. The twin in C++ stands in image_settle() of image.cpp.
// bend_move(to, from, n, to, from, n, zero, n): two copies and zeros, n times 16 bytes each, between any memory of either side. Small copies by a kernel
// follow and precede other kernels at once; through the copy engine each change between the two costs a few microseconds.
// bend_selftest(out, n): out[i] = (i * 2654435761) ^ i.
#include "runtime/gpu/kernels.h"

namespace bendc::rt::gpu {

const char kRuntimePtx[] = R"(
.version 6.0
.target sm_70
.address_size 64

.visible .entry bend_flip(.param .u64 p_control)
{
  .reg .pred %p<6>;
  .reg .b32 %r<16>;
  .reg .b64 %d<12>;

  // griddepcontrol.wait;
  // griddepcontrol.launch_dependents;
  ld.param.u64 %d1, [p_control];
  ld.global.u32 %r1, [%d1+48];
  ld.global.u32 %r2, [%d1+124];
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra WAITS;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 ret;

  ld.global.u32 %r2, [%d1+532];
  add.u32 %r2, %r2, 1;
  st.global.u32 [%d1+532], %r2;
  cvt.u64.u32 %d2, %r1;
  ld.global.u64 %d3, [%d1+544];
  add.u64 %d3, %d3, %d2;
  st.global.u64 [%d1+544], %d3;
  ld.global.u64 %d4, [%d1+552];
  max.u64 %d4, %d4, %d2;
  st.global.u64 [%d1+552], %d4;

  ld.global.u32 %r3, [%d1+256];
  ld.global.u32 %r4, [%d1+52];
  min.u32 %r3, %r3, %r4;
  ld.global.u64 %d5, [%d1+512];
  setp.ne.u64 %p2, %d5, 0;

  ld.global.u64 %d8, [%d1+768];
  shr.u64 %d9, %d8, 40;
  and.b64 %d8, %d8, 1099511627775;
  ld.global.u32 %r10, [%d1+684];
  cvt.u64.u32 %d10, %r10;
  min.u64 %d9, %d9, %d10;
  ld.global.u32 %r10, [%d1+688];
  cvt.u64.u32 %d10, %r10;
  min.u64 %d11, %d8, %d10;
  ld.global.u64 %d10, [%d1+560];
  add.u64 %d10, %d10, %d9;
  st.global.u64 [%d1+560], %d10;
  ld.global.u64 %d10, [%d1+568];
  add.u64 %d10, %d10, %d11;
  st.global.u64 [%d1+568], %d10;
  mov.u64 %d8, 0;
  st.global.u64 [%d1+768], %d8;
  ld.global.u32 %r11, [%d1+896];
  st.global.u32 [%d1+680], %r11;
  mov.u32 %r12, 0;
  st.global.u32 [%d1+896], %r12;
  ld.global.u64 %d8, [%d1+664];
  ld.global.u64 %d9, [%d1+672];
  st.global.u64 [%d1+664], %d9;
  st.global.u64 [%d1+672], %d8;
  add.u32 %r3, %r3, %r11;

  selp.u32 %r3, 0, %r3, %p2;
  st.global.u32 [%d1+48], %r3;
  mov.u32 %r5, 0;
  st.global.u32 [%d1+256], %r5;
  st.global.u32 [%d1+384], %r5;

  ld.global.u64 %d6, [%d1];
  ld.global.u64 %d7, [%d1+8];
  st.global.u64 [%d1], %d7;
  st.global.u64 [%d1+8], %d6;

  shr.u32 %r14, %r1, 2;
  add.u32 %r14, %r14, %r1;
  setp.gt.u32 %p4, %r3, %r14;
  ld.global.u32 %r13, [%d1+696];
  max.u32 %r14, %r1, %r3;
  setp.gt.or.u32 %p4, %r14, %r13, %p4;
  setp.ne.or.u64 %p4, %d11, 0, %p4;
  ld.global.u32 %r13, [%d1+700];
  ld.global.u32 %r6, [%d1+536];
  setp.ge.u32 %p3, %r3, %r6;
  ld.global.u32 %r15, [%d1+60];
  setp.eq.u32 %p5, %r15, 1;
  selp.u32 %r7, 0, 2, %p4;
  selp.u32 %r7, 1, %r7, %p3;
  st.global.u32 [%d1+60], %r7;
  selp.u32 %r9, 0, %r13, %p4;
  ld.global.u32 %r8, [%d1+540];
  ld.global.u32 %r15, [%d1+708];
  selp.u32 %r8, %r15, %r8, %p5;
  selp.u32 %r9, %r8, %r9, %p3;
  st.global.u32 [%d1+64], %r9;

  ld.global.u32 %r4, [%d1+72];
  ld.global.u32 %r8, [%d1+116];
  setp.lt.u32 %p5, %r3, %r6;
  setp.lt.or.u32 %p5, %r3, %r4, %p5;
  setp.ne.or.u32 %p5, %r8, 0, %p5;
  selp.u32 %r8, 1, 0, %p5;
  st.global.u32 [%d1+120], %r8;
  cvt.u64.u32 %d8, %r3;
  cvt.u64.u32 %d9, %r4;
  ld.global.u32 %r13, [%d1+704];
  mov.u32 %r14, 0;
SPREAD:
  setp.ge.u32 %p5, %r14, %r13;
  @%p5 bra SPREAD_END;
  shl.b64 %d8, %d8, 1;
  setp.gt.u64 %p5, %d8, %d9;
  @%p5 bra SPREAD_END;
  add.u32 %r14, %r14, 1;
  bra SPREAD;
SPREAD_END:
  st.global.u32 [%d1+112], %r14;
  ret;
WAITS:
  mov.u32 %r2, 0;
  st.global.u32 [%d1+124], %r2;
  ret;
}

.visible .entry bend_diff(.param .u64 p_heap, .param .u64 p_shadow, .param .u64 p_flags)
{
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .reg .b64 %d<16>;

  ld.param.u64 %d1, [p_heap];
  ld.param.u64 %d2, [p_shadow];
  ld.param.u64 %d3, [p_flags];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %d4, %r1, 65536;
  mul.wide.u32 %d5, %r2, 16;
  add.u64 %d4, %d4, %d5;
  add.u64 %d1, %d1, %d4;
  add.u64 %d2, %d2, %d4;
  mov.u32 %r3, 0;
  mov.u32 %r4, 0;
NEXT:
  ld.global.v2.u64 {%d6, %d7}, [%d1];
  ld.global.v2.u64 {%d8, %d9}, [%d2];
  xor.b64 %d10, %d6, %d8;
  xor.b64 %d11, %d7, %d9;
  or.b64 %d10, %d10, %d11;
  setp.eq.u64 %p1, %d10, 0;
  @%p1 bra EQUAL;
  st.global.v2.u64 [%d2], {%d6, %d7};
  mov.u32 %r4, 1;
EQUAL:
  add.u64 %d1, %d1, 2048;
  add.u64 %d2, %d2, 2048;
  add.u32 %r3, %r3, 1;
  setp.lt.u32 %p2, %r3, 32;
  @%p2 bra NEXT;
  setp.eq.u32 %p3, %r4, 0;
  @%p3 ret;
  cvt.u64.u32 %d12, %r1;
  add.u64 %d3, %d3, %d12;
  mov.u32 %r5, 1;
  st.global.u8 [%d3], %r5;
  ret;
}

.visible .entry bend_move(.param .u64 p_to1, .param .u64 p_from1, .param .u32 p_n1, .param .u64 p_to2, .param .u64 p_from2, .param .u32 p_n2, .param .u64 p_zero, .param .u32 p_nz)
{
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .reg .b64 %d<8>;

  // griddepcontrol.wait;
  // griddepcontrol.launch_dependents;
  mov.u32 %r5, %ctaid.x;
  mov.u32 %r6, %ntid.x;
  mov.u32 %r7, %tid.x;
  mad.lo.u32 %r1, %r5, %r6, %r7;
  mov.u32 %r5, %nctaid.x;
  mul.lo.u32 %r2, %r5, %r6;

  ld.param.u64 %d1, [p_to1];
  ld.param.u64 %d2, [p_from1];
  ld.param.u32 %r3, [p_n1];
  mov.u32 %r4, %r1;
FIRST:
  setp.ge.u32 %p1, %r4, %r3;
  @%p1 bra FIRST_END;
  mul.wide.u32 %d3, %r4, 16;
  add.u64 %d4, %d1, %d3;
  add.u64 %d5, %d2, %d3;
  ld.global.v2.u64 {%d6, %d7}, [%d5];
  st.global.v2.u64 [%d4], {%d6, %d7};
  add.u32 %r4, %r4, %r2;
  bra FIRST;
FIRST_END:
  ld.param.u64 %d1, [p_to2];
  ld.param.u64 %d2, [p_from2];
  ld.param.u32 %r3, [p_n2];
  mov.u32 %r4, %r1;
SECOND:
  setp.ge.u32 %p1, %r4, %r3;
  @%p1 bra SECOND_END;
  mul.wide.u32 %d3, %r4, 16;
  add.u64 %d4, %d1, %d3;
  add.u64 %d5, %d2, %d3;
  ld.global.v2.u64 {%d6, %d7}, [%d5];
  st.global.v2.u64 [%d4], {%d6, %d7};
  add.u32 %r4, %r4, %r2;
  bra SECOND;
SECOND_END:
  ld.param.u64 %d1, [p_zero];
  ld.param.u32 %r3, [p_nz];
  mov.u32 %r4, %r1;
  mov.u64 %d6, 0;
ZERO:
  setp.ge.u32 %p1, %r4, %r3;
  @%p1 bra ZERO_END;
  mul.wide.u32 %d3, %r4, 16;
  add.u64 %d4, %d1, %d3;
  st.global.v2.u64 [%d4], {%d6, %d6};
  add.u32 %r4, %r4, %r2;
  bra ZERO;
ZERO_END:
  ret;
}

.visible .entry bend_selftest(.param .u64 p_out, .param .u32 p_count)
{
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .reg .b64 %d<4>;

  ld.param.u64 %d1, [p_out];
  ld.param.u32 %r1, [p_count];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 ret;
  mul.lo.u32 %r6, %r5, 2654435761;
  xor.b32 %r6, %r6, %r5;
  mul.wide.u32 %d2, %r5, 4;
  add.u64 %d3, %d1, %d2;
  st.global.u32 [%d3], %r6;
  ret;
}
)";

}  // namespace bendc::rt::gpu
