// How weights lie on the device, and how halves are made of them.
//
// A matrix [outputs, inputs] is cut into tiles of 16 outputs and steps of 64 inputs. Of a tile and step, lane 4g + t of a
// warp holds the inputs 16t..16t+15 of the outputs g and g + 8, in the order in which the matrix unit takes them, so that
// one load of 16 bytes by each lane fetches what it needs. What a tile or a step lacks is zero.
#pragma once
#include <cuda_fp16.h>
#include <stdint.h>

// Kinds of storage; src/backend/cuda/weights.rs counts them the same way.
constexpr int Q4_AFFINE = 0;  // 4 bits; a scale and an offset per 32 inputs
constexpr int Q4_CENTRED = 1; // 4 bits less 8; a scale per 32 inputs
constexpr int Q8_CENTRED = 2; // 8 bits less 128; a scale per 16 inputs
constexpr int HALF = 3;       // 16-bit floats

constexpr float HALF_MAX = 65504.0f;

__device__ inline half to_half(float x) { return __float2half(fminf(fmaxf(x, -HALF_MAX), HALF_MAX)); }

template <int KIND> __host__ __device__ constexpr int chunk_bytes() {
    return KIND == HALF ? 2048 : KIND == Q8_CENTRED ? 1024 : 512;
}

template <int KIND> __host__ __device__ constexpr int scale_bytes() {
    return KIND == HALF ? 0 : KIND == Q4_CENTRED ? 64 : 128;
}

// A kernel may be started while the one before it ends, where it says so: it must not touch what others write before it
// has waited. Every kernel waits, so what an earlier one wrote is there as well.
__device__ inline void wait_for_others() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
__device__ inline void let_next_start() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Where the element k of a row lies in rows of halves, of which there are so many groups of eight: of eight rows and 64
// elements, first the lower halves of each lane's 16 elements, then the upper ones, by lane. What eight rows or 64 elements
// lack is not written.
__device__ inline size_t row_place(int row, int k, int groups) {
    const size_t block = (size_t)(k / 64) * groups + row / 8;
    const int lane = row % 8 * 4 + k % 64 / 16;
    return ((block * 2 + k % 16 / 8) * 32 + lane) * 8 + k % 8;
}

__device__ inline uint32_t bits(half2 x) { return *reinterpret_cast<uint32_t *>(&x); }
__device__ inline half2 halves(uint32_t x) { return *reinterpret_cast<half2 *>(&x); }

// Copies to shared memory that run beside the program; a lane that only reads what it copied needs no barrier. `there`
// false: zeros.
template <int BYTES> __device__ inline void copy_async(void *to, const void *from, bool there = true) {
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    const int bytes = there ? BYTES : 0;
    if constexpr (BYTES == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(bytes) : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at), "l"(from), "n"(BYTES), "r"(bytes) : "memory");
    }
}
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most so many of the groups committed last are still on their way.
template <int GROUPS> __device__ inline void wait_for_copies() { asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS) : "memory"); }

// c += a · b, of 16 by 16 and 16 by 8 halves.
__device__ inline void multiply(float *c, uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
// Four 8 by 8 matrices of halves, of which each lane names a row; and two that are turned on the way.
__device__ inline void load_matrices(uint32_t *a, const half *from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "r"((uint32_t)__cvta_generic_to_shared(from))
                 : "memory");
}
__device__ inline void load_turned_matrices(uint32_t *b, const half *from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                 : "=r"(b[0]), "=r"(b[1])
                 : "r"((uint32_t)__cvta_generic_to_shared(from))
                 : "memory");
}

// What a lane holds of one tile and step. It is fetched to the shared memory of the warp and taken from there; both know
// the lane's own places only. Its quants begin at lane * 16 of a chunk, its scales at scale_place.
template <int KIND> struct Raw;
template <int KIND> __device__ inline int scale_place(int lane) {
    if (KIND == Q8_CENTRED) return lane * 4;
    return (lane / 4 * 2 + lane % 4 / 2) * (KIND == Q4_AFFINE ? 8 : 4);
}

template <> struct Raw<Q4_AFFINE> {
    static constexpr int BYTES = 32 * 24; // of a warp
    uint4 q;
    uint2 s;
    static __device__ void fetch(uint8_t *to, const uint8_t *quants, const uint8_t *scales, int lane) {
        copy_async<16>(to + lane * 16, quants);
        copy_async<8>(to + 512 + lane * 8, scales);
    }
    __device__ void take(const uint8_t *from, int lane) {
        q = reinterpret_cast<const uint4 *>(from)[lane];
        s = reinterpret_cast<const uint2 *>(from + 512)[lane];
    }
};
template <> struct Raw<Q4_CENTRED> {
    static constexpr int BYTES = 32 * 20;
    uint4 q;
    uint32_t s;
    static __device__ void fetch(uint8_t *to, const uint8_t *quants, const uint8_t *scales, int lane) {
        copy_async<16>(to + lane * 16, quants);
        copy_async<4>(to + 512 + lane * 4, scales);
    }
    __device__ void take(const uint8_t *from, int lane) {
        q = reinterpret_cast<const uint4 *>(from)[lane];
        s = reinterpret_cast<const uint32_t *>(from + 512)[lane];
    }
};
template <> struct Raw<Q8_CENTRED> {
    static constexpr int BYTES = 32 * 36;
    uint4 q[2];
    uint32_t s;
    static __device__ void fetch(uint8_t *to, const uint8_t *quants, const uint8_t *scales, int lane) {
        copy_async<16>(to + lane * 16, quants);
        copy_async<16>(to + 512 + lane * 16, quants + 512);
        copy_async<4>(to + 1024 + lane * 4, scales);
    }
    __device__ void take(const uint8_t *from, int lane) {
        q[0] = reinterpret_cast<const uint4 *>(from)[lane];
        q[1] = reinterpret_cast<const uint4 *>(from + 512)[lane];
        s = reinterpret_cast<const uint32_t *>(from + 1024)[lane];
    }
};
template <> struct Raw<HALF> {
    static constexpr int BYTES = 32 * 64;
    uint4 q[4];
    static __device__ void fetch(uint8_t *to, const uint8_t *quants, const uint8_t *, int lane) {
#pragma unroll
        for (int i = 0; i < 4; i++) copy_async<16>(to + i * 512 + lane * 16, quants + i * 512);
    }
    __device__ void take(const uint8_t *from, int lane) {
#pragma unroll
        for (int i = 0; i < 4; i++) q[i] = reinterpret_cast<const uint4 *>(from)[i * 32 + lane];
    }
};

constexpr uint32_t THOUSAND = 0x64006400; // 1024 twice; its last bits count by ones

// The bits of w in a mask, and those of 1024 twice: one instruction, which the compiler does not find by itself.
__device__ inline half2 thousand_and(uint32_t w, uint32_t mask) {
    uint32_t out;
    asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(out) : "r"(w), "r"(mask), "r"(THOUSAND));
    return halves(out);
}

// Eight weights of four bits, of which pair p lies in the nibbles p and p + 4.
template <bool CENTRED> __device__ inline void unpack4(uint32_t w, half2 scale, half2 offset, uint32_t *out) {
    const half2 low = __float2half2_rn(CENTRED ? 1032.0f : 1024.0f);
    const half2 sixteenth = __float2half2_rn(0.0625f), high = __float2half2_rn(CENTRED ? -72.0f : -64.0f);
#pragma unroll
    for (int p = 0; p < 4; p += 2) {
        half2 a = __hsub2(thousand_and(w, 0x000f000f), low);
        half2 b = __hfma2(thousand_and(w, 0x00f000f0), sixteenth, high);
        out[p] = bits(CENTRED ? __hmul2(a, scale) : __hfma2(a, scale, offset));
        out[p + 1] = bits(CENTRED ? __hmul2(b, scale) : __hfma2(b, scale, offset));
        w >>= 8;
    }
}

// Four weights of eight bits.
__device__ inline void unpack8(uint32_t w, half2 scale, uint32_t *out) {
    const half2 zero = __float2half2_rn(1152.0f);
    out[0] = bits(__hmul2(__hsub2(halves(__byte_perm(w, THOUSAND, 0x5150)), zero), scale));
    out[1] = bits(__hmul2(__hsub2(halves(__byte_perm(w, THOUSAND, 0x5352)), zero), scale));
}

// The eight pairs of a lane's 16 inputs: lower[p] of output g, upper[p] of output g + 8.
__device__ inline void unpack(const Raw<Q4_AFFINE> &raw, uint32_t *lower, uint32_t *upper) {
    half2 a = halves(raw.s.x), b = halves(raw.s.y);
    unpack4<false>(raw.q.x, __low2half2(a), __high2half2(a), lower);
    unpack4<false>(raw.q.y, __low2half2(a), __high2half2(a), lower + 4);
    unpack4<false>(raw.q.z, __low2half2(b), __high2half2(b), upper);
    unpack4<false>(raw.q.w, __low2half2(b), __high2half2(b), upper + 4);
}
__device__ inline void unpack(const Raw<Q4_CENTRED> &raw, uint32_t *lower, uint32_t *upper) {
    half2 a = __low2half2(halves(raw.s)), b = __high2half2(halves(raw.s));
    unpack4<true>(raw.q.x, a, a, lower);
    unpack4<true>(raw.q.y, a, a, lower + 4);
    unpack4<true>(raw.q.z, b, b, upper);
    unpack4<true>(raw.q.w, b, b, upper + 4);
}
__device__ inline void unpack(const Raw<Q8_CENTRED> &raw, uint32_t *lower, uint32_t *upper) {
    half2 a = __low2half2(halves(raw.s)), b = __high2half2(halves(raw.s));
    const uint32_t *x = &raw.q[0].x, *y = &raw.q[1].x;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        unpack8(x[i], a, lower + 2 * i);
        unpack8(y[i], b, upper + 2 * i);
    }
}
__device__ inline void unpack(const Raw<HALF> &raw, uint32_t *lower, uint32_t *upper) {
    const uint32_t *x = &raw.q[0].x;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        lower[i] = x[i];
        upper[i] = x[8 + i];
    }
}
