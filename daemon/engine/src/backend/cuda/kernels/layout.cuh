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

__device__ inline uint32_t bits(half2 x) { return *reinterpret_cast<uint32_t *>(&x); }
__device__ inline half2 halves(uint32_t x) { return *reinterpret_cast<half2 *>(&x); }

// A load that leaves the first-level cache to the activations.
__device__ inline uint4 stream16(const void *p) {
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
    return v;
}
__device__ inline uint2 stream8(const void *p) {
    uint2 v;
    asm volatile("ld.global.nc.L1::no_allocate.v2.u32 {%0,%1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p));
    return v;
}
__device__ inline uint32_t stream4(const void *p) {
    uint32_t v;
    asm volatile("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(v) : "l"(p));
    return v;
}

// What a lane holds of one tile and step, as loaded.
template <int KIND> struct Raw;

template <> struct Raw<Q4_AFFINE> {
    uint4 q;
    uint2 s;
    __device__ void load(const uint8_t *quants, const uint8_t *scales, size_t chunk, int lane) {
        q = stream16(quants + chunk * 512 + lane * 16);
        s = stream8(scales + chunk * 128 + ((lane >> 2) * 2 + ((lane & 3) >> 1)) * 8);
    }
};
template <> struct Raw<Q4_CENTRED> {
    uint4 q;
    uint32_t s;
    __device__ void load(const uint8_t *quants, const uint8_t *scales, size_t chunk, int lane) {
        q = stream16(quants + chunk * 512 + lane * 16);
        s = stream4(scales + chunk * 64 + ((lane >> 2) * 2 + ((lane & 3) >> 1)) * 4);
    }
};
template <> struct Raw<Q8_CENTRED> {
    uint4 q[2];
    uint32_t s;
    __device__ void load(const uint8_t *quants, const uint8_t *scales, size_t chunk, int lane) {
        q[0] = stream16(quants + chunk * 1024 + lane * 16);
        q[1] = stream16(quants + chunk * 1024 + 512 + lane * 16);
        s = stream4(scales + chunk * 128 + lane * 4);
    }
};
template <> struct Raw<HALF> {
    uint4 q[4];
    __device__ void load(const uint8_t *quants, const uint8_t *, size_t chunk, int lane) {
#pragma unroll
        for (int i = 0; i < 4; i++) q[i] = stream16(quants + chunk * 2048 + i * 512 + lane * 16);
    }
};

constexpr uint32_t THOUSAND = 0x64006400; // 1024 twice; its last bits count by ones

// Eight weights of four bits, of which pair p lies in the nibbles p and p + 4.
template <bool CENTRED> __device__ inline void unpack4(uint32_t w, half2 scale, half2 offset, uint32_t *out) {
    const half2 low = __float2half2_rn(CENTRED ? 1032.0f : 1024.0f);
    const half2 sixteenth = __float2half2_rn(0.0625f), high = __float2half2_rn(CENTRED ? -72.0f : -64.0f);
#pragma unroll
    for (int p = 0; p < 4; p += 2) {
        half2 a = __hsub2(halves((w & 0x000f000f) | THOUSAND), low);
        half2 b = __hfma2(halves((w & 0x00f000f0) | THOUSAND), sixteenth, high);
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
