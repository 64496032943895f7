// What happens to single rows between the products.
#include "layout.cuh"

// The sum over a block of at most 1024 threads, in one fixed order, known to all of them.
__device__ inline float block_sum(float v) {
    __shared__ float sums[32];
    for (int s = 16; s > 0; s /= 2) v += __shfl_xor_sync(0xffffffff, v, s);
    __syncthreads();
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = v;
    __syncthreads();
    const int warps = (blockDim.x + 31) / 32, lane = threadIdx.x % 32;
    v = lane < warps ? sums[lane] : 0.0f;
    for (int s = 16; s > 0; s /= 2) v += __shfl_xor_sync(0xffffffff, v, s);
    return v;
}

struct NormArgs {
    float *x;          // [rows, width]
    const float *y;    // added to x first, or null
    const float *post; // weight of a norm of y before that, or null
    const float *weight; // null: only the addition
    half *out;           // [rows, width], by row_place
    const uint32_t *rows; // which rows of x, or null: all
    float post_eps;
    float eps;
    int width;
};

constexpr int HELD = 4; // groups of four elements that a thread of a norm keeps

// A width is a multiple of 4 and at most 4 * HELD * 1024.
extern "C" __global__ void __launch_bounds__(1024) rms_norm(const __grid_constant__ NormArgs args) {
    let_next_start();
    wait_for_others();
    const size_t row = args.rows ? args.rows[blockIdx.x] : blockIdx.x;
    const int groups = args.width / 4;
    float4 *x = reinterpret_cast<float4 *>(args.x + row * args.width);
    const float4 *y = reinterpret_cast<const float4 *>(args.y + row * args.width);
    float4 v[HELD], added[HELD], weight[HELD];
#pragma unroll
    for (int h = 0; h < HELD; h++) {
        const int i = threadIdx.x + h * blockDim.x;
        v[h] = added[h] = weight[h] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (i >= groups) continue;
        v[h] = x[i];
        if (args.y) added[h] = y[i];
        if (args.weight) weight[h] = reinterpret_cast<const float4 *>(args.weight)[i];
    }
    if (args.post) {
        float sum = 0.0f;
#pragma unroll
        for (int h = 0; h < HELD; h++)
            sum += added[h].x * added[h].x + added[h].y * added[h].y + added[h].z * added[h].z + added[h].w * added[h].w;
        const float factor = rsqrtf(block_sum(sum) / args.width + args.post_eps);
#pragma unroll
        for (int h = 0; h < HELD; h++) {
            const int i = threadIdx.x + h * blockDim.x;
            if (i >= groups) continue;
            const float4 p = reinterpret_cast<const float4 *>(args.post)[i];
            added[h] = make_float4(added[h].x * factor * p.x, added[h].y * factor * p.y, added[h].z * factor * p.z,
                                   added[h].w * factor * p.w);
        }
    }
    float sum = 0.0f;
#pragma unroll
    for (int h = 0; h < HELD; h++) {
        const int i = threadIdx.x + h * blockDim.x;
        v[h] = make_float4(v[h].x + added[h].x, v[h].y + added[h].y, v[h].z + added[h].z, v[h].w + added[h].w);
        if (args.y && i < groups) x[i] = v[h];
        sum += v[h].x * v[h].x + v[h].y * v[h].y + v[h].z * v[h].z + v[h].w * v[h].w;
    }
    if (!args.weight) return;
    const float factor = rsqrtf(block_sum(sum) / args.width + args.eps);
    const int row_groups = (gridDim.x + 7) / 8;
#pragma unroll
    for (int h = 0; h < HELD; h++) {
        const int i = threadIdx.x + h * blockDim.x;
        if (i >= groups) continue;
        const float4 w = weight[h];
        *reinterpret_cast<uint2 *>(args.out + row_place(blockIdx.x, 4 * i, row_groups)) =
            make_uint2(bits(__halves2half2(to_half(v[h].x * factor * w.x), to_half(v[h].y * factor * w.y))),
                       bits(__halves2half2(to_half(v[h].z * factor * w.z), to_half(v[h].w * factor * w.w))));
    }
}

struct EmbedArgs {
    const uint8_t *quants;
    const uint8_t *scales;
    const uint32_t *tokens;
    float *out; // [rows, width]
    float factor;
    int width;
    int steps;
    int kind;
};

extern "C" __global__ void embed(const __grid_constant__ EmbedArgs args) {
    let_next_start();
    wait_for_others();
    const uint32_t token = args.tokens[blockIdx.x];
    const int r = token % 16, g = r % 8, upper = r / 8;
    for (int k = threadIdx.x; k < args.width; k += blockDim.x) {
        const size_t chunk = (size_t)(token / 16) * args.steps + k / 64;
        const int t = k % 64 / 16, i = k % 16, lane = g * 4 + t;
        float v;
        if (args.kind == HALF) {
            const half *from = reinterpret_cast<const half *>(args.quants + chunk * 2048 + (upper * 2 + i / 8) * 512 + lane * 16);
            v = __half2float(from[i % 8]);
        } else if (args.kind == Q8_CENTRED) {
            int q = args.quants[chunk * 1024 + upper * 512 + lane * 16 + i] - 128;
            v = q * __half2float(reinterpret_cast<const half *>(args.scales + chunk * 128)[lane * 2 + upper]);
        } else {
            const uint32_t word = reinterpret_cast<const uint32_t *>(args.quants + chunk * 512 + lane * 16 + upper * 8)[i / 8];
            const int q = word >> 4 * (i % 8 / 2 + i % 2 * 4) & 15, place = (g * 2 + (t >> 1)) * 2 + upper;
            if (args.kind == Q4_AFFINE) {
                half2 s = reinterpret_cast<const half2 *>(args.scales + chunk * 128)[place];
                v = q * __low2float(s) + __high2float(s);
            } else {
                v = (q - 8) * __half2float(reinterpret_cast<const half *>(args.scales + chunk * 64)[place]);
            }
        }
        args.out[(size_t)blockIdx.x * args.width + k] = v * args.factor;
    }
}

struct GatherArgs {
    const float *sources[64]; // a row each
    float *out;               // [count, width]
    int width;
};

extern "C" __global__ void gather(const __grid_constant__ GatherArgs args) {
    let_next_start();
    wait_for_others();
    const float *from = args.sources[blockIdx.x];
    for (int i = threadIdx.x; i < args.width; i += blockDim.x) args.out[(size_t)blockIdx.x * args.width + i] = from[i];
}

struct HalveArgs {
    const float *x;
    const float *up; // or null
    half *out; // by row_place
    float factor;
    int count;
    int width;
    int groups; // of eight rows
    int gelu;
};

// Rows as halves; with `up`, activation(x) * up.
extern "C" __global__ void halve(const __grid_constant__ HalveArgs args) {
    let_next_start();
    wait_for_others();
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= args.count) return;
    float x = args.x[i];
    if (args.up) {
        x = args.gelu ? 0.5f * x * (1.0f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x))) : x / (1.0f + __expf(-x));
        x *= args.up[i];
    }
    args.out[row_place(i / args.width, i % args.width, args.groups)] = to_half(x * args.factor);
}
