// Weights from their places in a file to their places on the device, once, at load.
#include "layout.cuh"

struct PackArgs {
    const uint8_t *source;
    uint8_t *quants;
    uint8_t *scales;
    int outputs;
    int inputs;
    int tiles;
    int steps;
};

struct Weight {
    int q; // of 4 bits from 0, or of 8 bits about 0
    half scale;
    half offset;
};

__device__ inline half half_at(const uint8_t *p) { return __ushort_as_half(p[0] | p[1] << 8); }
__device__ inline int nibble(const uint8_t *p, int i) { return i < 16 ? p[i] & 15 : p[i - 16] >> 4; }

struct Q4_0 {
    static constexpr int KIND = Q4_CENTRED, WEIGHTS = 32, BYTES = 18;
    __device__ static Weight at(const uint8_t *b, int i) { return {nibble(b + 2, i), half_at(b), half_at(b)}; }
};
struct Q4_1 {
    static constexpr int KIND = Q4_AFFINE, WEIGHTS = 32, BYTES = 20;
    __device__ static Weight at(const uint8_t *b, int i) { return {nibble(b + 4, i), half_at(b), half_at(b + 2)}; }
};
struct Q5_0 {
    static constexpr int KIND = Q8_CENTRED, WEIGHTS = 32, BYTES = 22;
    __device__ static Weight at(const uint8_t *b, int i) {
        int high = b[2 + i / 8] >> (i % 8) & 1;
        return {(nibble(b + 6, i) | high << 4) - 16, half_at(b), half_at(b)};
    }
};
struct Q8_0 {
    static constexpr int KIND = Q8_CENTRED, WEIGHTS = 32, BYTES = 34;
    __device__ static Weight at(const uint8_t *b, int i) { return {(int8_t)b[2 + i], half_at(b), half_at(b)}; }
};
struct Q4_K {
    static constexpr int KIND = Q4_AFFINE, WEIGHTS = 256, BYTES = 144;
    __device__ static Weight at(const uint8_t *b, int i) {
        const uint8_t *s = b + 4;
        int j = i / 32, scale, least;
        if (j < 4) {
            scale = s[j] & 63;
            least = s[j + 4] & 63;
        } else {
            scale = (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
            least = (s[j + 4] >> 4) | (s[j] >> 6) << 4;
        }
        uint8_t q = b[16 + i / 64 * 32 + i % 32];
        return {i / 32 % 2 ? q >> 4 : q & 15, __float2half(__half2float(half_at(b)) * scale),
                __float2half(-__half2float(half_at(b + 2)) * least)};
    }
};
struct Q6_K {
    static constexpr int KIND = Q8_CENTRED, WEIGHTS = 256, BYTES = 210;
    __device__ static Weight at(const uint8_t *b, int i) {
        int part = i / 128, within = i % 128, quarter = within / 32, l = within % 32;
        uint8_t low = b[part * 64 + l + quarter % 2 * 32];
        int q = (quarter < 2 ? low & 15 : low >> 4) | (b[128 + part * 32 + l] >> 2 * quarter & 3) << 4;
        int scale = (int8_t)b[192 + part * 8 + l / 16 + quarter * 2];
        half s = __float2half(__half2float(half_at(b + 208)) * scale);
        return {q - 32, s, s};
    }
};

// One thread packs what one lane holds of one tile and step.
template <class F> __device__ inline void pack(const PackArgs &args) {
    constexpr int KIND = F::KIND;
    const size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x, chunk = at / 32;
    if (chunk >= (size_t)args.tiles * args.steps) return;
    const int lane = at % 32, g = lane >> 2, t = lane & 3;
    const int tile = chunk / args.steps, step = chunk % args.steps, first = step * 64 + 16 * t;
    for (int upper = 0; upper < 2; upper++) {
        const int output = tile * 16 + g + 8 * upper;
        const bool there = output < args.outputs && first < args.inputs;
        half scale = __float2half(0.0f), offset = scale;
        uint32_t words[4] = {0, 0, 0, 0};
        for (int i = 0; i < 16; i++) {
            Weight w = {KIND == Q4_CENTRED ? 8 : 0, scale, offset};
            if (there && first + i < args.inputs) {
                const uint8_t *row = args.source + (size_t)output * (args.inputs / F::WEIGHTS) * F::BYTES;
                w = F::at(row + (first + i) / F::WEIGHTS * F::BYTES, (first + i) % F::WEIGHTS);
                scale = w.scale;
                offset = w.offset;
            }
            if (KIND == Q8_CENTRED) words[i / 4] |= (uint32_t)(w.q + 128) << i % 4 * 8;
            else words[i / 8] |= (uint32_t)w.q << 4 * (i % 8 / 2 + i % 2 * 4);
        }
        if (KIND == Q8_CENTRED) {
            for (int i = 0; i < 4; i++) reinterpret_cast<uint32_t *>(args.quants + chunk * 1024 + upper * 512 + lane * 16)[i] = words[i];
            reinterpret_cast<half *>(args.scales + chunk * 128)[lane * 2 + upper] = scale;
        } else {
            for (int i = 0; i < 2; i++) reinterpret_cast<uint32_t *>(args.quants + chunk * 512 + lane * 16 + upper * 8)[i] = words[i];
            const int place = (g * 2 + (t >> 1)) * 2 + upper; // both lanes of a block of 32 write the same
            if (KIND == Q4_AFFINE) reinterpret_cast<half2 *>(args.scales + chunk * 128)[place] = __halves2half2(scale, offset);
            else reinterpret_cast<half *>(args.scales + chunk * 64)[place] = scale;
        }
    }
}

#define PACK(FORMAT)                                                                                                    \
    extern "C" __global__ void pack_##FORMAT(const __grid_constant__ PackArgs args) {                                      \
        wait_for_others();                                                                                              \
        pack<FORMAT>(args);                                                                                             \
    }
PACK(Q4_0)
PACK(Q4_1)
PACK(Q5_0)
PACK(Q8_0)
PACK(Q4_K)
PACK(Q6_K)

extern "C" __global__ void pack_half(const __grid_constant__ PackArgs args) {
    wait_for_others();
    const size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x, chunk = at / 32;
    if (chunk >= (size_t)args.tiles * args.steps) return;
    const int lane = at % 32, g = lane >> 2, t = lane & 3;
    const int tile = chunk / args.steps, step = chunk % args.steps;
    const half *source = reinterpret_cast<const half *>(args.source);
    for (int part = 0; part < 4; part++) {
        half *to = reinterpret_cast<half *>(args.quants + chunk * 2048 + part * 512 + lane * 16);
        const int output = tile * 16 + g + 8 * (part / 2), first = step * 64 + 16 * t + 8 * (part % 2);
        for (int i = 0; i < 8; i++) {
            bool there = output < args.outputs && first + i < args.inputs;
            to[i] = there ? source[(size_t)output * args.inputs + first + i] : __float2half(0.0f);
        }
    }
}
