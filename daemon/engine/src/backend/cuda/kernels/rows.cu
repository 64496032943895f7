// What happens to single rows between the products.
#include "layout.cuh"

// The sum over a block of at most 1024 threads, in one fixed order, known to all of them.
__device__ inline float block_sum(float v) {
    __shared__ float sums[32];
    for (int s = 16; s > 0; s /= 2) v += __shfl_xor_sync(0xffffffff, v, s);
    __syncthreads();
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = v;
    __syncthreads();
    float total = 0.0f;
    for (int w = 0; w < (blockDim.x + 31) / 32; w++) total += sums[w];
    return total;
}

struct NormArgs {
    float *x;          // [rows, width]
    const float *y;    // added to x first, or null
    const float *post; // weight of a norm of y before that, or null
    const float *weight; // null: only the addition
    half *out;           // [rows, width]
    const uint32_t *rows; // which rows of x, or null: all
    float post_eps;
    float eps;
    int width;
};

extern "C" __global__ void rms_norm(const __grid_constant__ NormArgs args) {
    let_next_start();
    wait_for_others();
    const size_t row = args.rows ? args.rows[blockIdx.x] : blockIdx.x;
    float *x = args.x + row * args.width;
    const float *y = args.y ? args.y + row * args.width : nullptr;
    float y_factor = 1.0f;
    if (args.post) {
        float sum = 0.0f;
        for (int i = threadIdx.x; i < args.width; i += blockDim.x) sum += y[i] * y[i];
        y_factor = rsqrtf(block_sum(sum) / args.width + args.post_eps);
    }
    float sum = 0.0f;
    for (int i = threadIdx.x; i < args.width; i += blockDim.x) {
        float v = x[i];
        if (y) {
            v += args.post ? y[i] * y_factor * args.post[i] : y[i];
            x[i] = v;
        }
        sum += v * v;
    }
    if (!args.weight) return;
    const float factor = rsqrtf(block_sum(sum) / args.width + args.eps);
    half *out = args.out + (size_t)blockIdx.x * args.width;
    for (int i = threadIdx.x; i < args.width; i += blockDim.x) out[i] = to_half(x[i] * factor * args.weight[i]);
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
    half *out;
    float factor;
    int count;
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
    args.out[i] = to_half(x * args.factor);
}

struct KeepArgs {
    half *cache; // [lines, capacity, head_dim]
    const uint32_t *offsets;
    int count;
    int from;
    int capacity;
    int head_dim;
};

// Offsets ascend and none is below its place, so that a thread that takes them in order overwrites nothing unread.
extern "C" __global__ void keep(const __grid_constant__ KeepArgs args) {
    let_next_start();
    wait_for_others();
    half *line = args.cache + (size_t)blockIdx.x * args.capacity * args.head_dim;
    for (int i = 0; i < args.count; i++)
        for (int d = threadIdx.x; d < args.head_dim; d += blockDim.x)
            line[(size_t)(args.from + i) * args.head_dim + d] = line[(size_t)(args.from + args.offsets[i]) * args.head_dim + d];
}

struct CopyArgs {
    const half *source; // [lines, source_capacity, head_dim]
    half *target;       // [lines, target_capacity, head_dim]
    int source_capacity;
    int target_capacity;
    int positions;
    int head_dim;
};

extern "C" __global__ void copy_positions(const __grid_constant__ CopyArgs args) {
    let_next_start();
    wait_for_others();
    const half *from = args.source + (size_t)blockIdx.x * args.source_capacity * args.head_dim;
    half *to = args.target + (size_t)blockIdx.x * args.target_capacity * args.head_dim;
    for (size_t i = threadIdx.x; i < (size_t)args.positions * args.head_dim; i += blockDim.x) to[i] = from[i];
}
