// Products of quantized weights and half-precision rows on the matrix units, summed in single precision.
//
// The inputs are cut into eight spans, one for each warp of a block. A span's sum runs in order, and the spans' sums are
// folded as a binary tree. So an output of a row is the same to the bit whatever the number of rows, the shape of the
// block and the other rows are.
//
// A warp's weights go through a ring in shared memory, so that enough of them is on its way at any time. Each lane copies
// there what it will itself take out, for which no warp waits for another. The weights are nobody's output: a block fills
// its ring with them while the kernel before it ends.
#include "layout.cuh"

struct Map {
    const uint8_t *quants;
    const uint8_t *scales;
    const float *bias; // or null
    void *out;         // float [rows, outputs]
    int tiles;
    int outputs;
};

struct MatmulArgs {
    Map maps[3];
    const half *x; // [rows, inputs], by row_place
    float factor;  // on the result
    int count;     // of maps
    int rows;
    int inputs;
    int steps;
    int gelu; // of a gated pair, or else SiLU
};

constexpr int SPANS = 8;
// What a gated pair's result is divided by, to fit a half; the next product multiplies by it.
constexpr float GATED_FACTOR = 1.0f / 64.0f;

__device__ inline float activated(float x, int gelu) {
    if (gelu) return 0.5f * x * (1.0f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
    return x / (1.0f + __expf(-x));
}

// NT groups of 8 rows, RT tiles of 16 outputs. GATED: half of the tiles are the gate's.
template <int KIND, int NT, int RT, bool GATED> __device__ inline void matmul(const MatmulArgs &args) {
    constexpr int STAGES = RT == 1 || (RT == 2 && NT <= 2) ? 4 : 2; // steps on their way
    constexpr int STAGE = RT * Raw<KIND>::BYTES;
    constexpr int OWN = GATED ? RT / 2 : RT; // tiles of the result
    // The next step's rows are on their way while one is computed, where registers last for it.
    constexpr int BUFFERS = NT * RT > 16 ? 1 : 2;
    static_assert(STAGES % BUFFERS == 0, "a step's buffer is known when it is compiled");
    extern __shared__ __align__(16) uint8_t room[];
    const int span = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
    uint8_t *ring = room + span * STAGES * STAGE;

    int block = blockIdx.x, at = 0;
    if (!GATED) {
        for (; at < args.count - 1; at++) {
            const int blocks = (args.maps[at].tiles + RT - 1) / RT;
            if (block < blocks) break;
            block -= blocks;
        }
    }
    const int begin = args.steps * span / SPANS, count = args.steps * (span + 1) / SPANS - begin;
    const uint8_t *quants[RT], *scales[RT];
#pragma unroll
    for (int r = 0; r < RT; r++) {
        const Map &map = args.maps[GATED ? r / OWN : at];
        const size_t chunk = (size_t)min(block * OWN + r % OWN, map.tiles - 1) * args.steps + begin;
        quants[r] = map.quants + chunk * chunk_bytes<KIND>() + lane * 16;
        scales[r] = map.scales + chunk * scale_bytes<KIND>() + scale_place<KIND>(lane);
    }
    const int group0 = blockIdx.y * NT, groups = (args.rows + 7) / 8;
    const uint4 *rows = reinterpret_cast<const uint4 *>(args.x) + ((size_t)begin * groups + group0) * 64 + lane;
    // Steps for which the lane has inputs. What it holds beyond is multiplied by zero.
    const int inside = min(count, (args.inputs - 16 * t + 63) / 64 - begin);

    let_next_start();
#pragma unroll
    for (int s = 0; s < STAGES; s++) {
        if (s < count) {
#pragma unroll
            for (int r = 0; r < RT; r++)
                Raw<KIND>::fetch(ring + s * STAGE + r * Raw<KIND>::BYTES, quants[r] + s * chunk_bytes<KIND>(),
                                 scales[r] + s * scale_bytes<KIND>(), lane);
        }
        commit_copies();
    }
    wait_for_others();

    uint4 x[BUFFERS][NT][2] = {};
    const auto load = [&](int step, uint4(*to)[2]) {
#pragma unroll
        for (int n = 0; n < NT; n++) {
            if (step < inside && (group0 + n) * 8 + g < args.rows) {
                to[n][0] = rows[n * 64];
                to[n][1] = rows[n * 64 + 32];
            }
        }
        rows += groups * 64;
    };
    if (BUFFERS == 2) load(0, x[0]);

    float sum[RT][NT][4] = {};
    for (int step0 = 0; step0 < count; step0 += STAGES) {
#pragma unroll
        for (int s = 0; s < STAGES; s++) {
            const int step = step0 + s;
            if (step >= count) break;
            load(step + BUFFERS - 1, x[(s + BUFFERS - 1) % BUFFERS]);
            wait_for_copies<STAGES - 1>();
            uint4(*from)[2] = x[s % BUFFERS];
#pragma unroll
            for (int r = 0; r < RT; r++) {
                uint8_t *place = ring + s * STAGE + r * Raw<KIND>::BYTES;
                Raw<KIND> raw;
                uint32_t a[8], b[8];
                raw.take(place, lane);
                if (step + STAGES < count)
                    Raw<KIND>::fetch(place, quants[r] + (s + STAGES) * chunk_bytes<KIND>(), scales[r] + (s + STAGES) * scale_bytes<KIND>(), lane);
                unpack(raw, a, b);
#pragma unroll
                for (int n = 0; n < NT; n++) {
                    const uint4 p = from[n][0], q = from[n][1];
                    multiply(sum[r][n], a[0], b[0], a[1], b[1], p.x, p.y);
                    multiply(sum[r][n], a[2], b[2], a[3], b[3], p.z, p.w);
                    multiply(sum[r][n], a[4], b[4], a[5], b[5], q.x, q.y);
                    multiply(sum[r][n], a[6], b[6], a[7], b[7], q.z, q.w);
                }
            }
            commit_copies();
        }
#pragma unroll
        for (int r = 0; r < RT; r++) {
            quants[r] += STAGES * chunk_bytes<KIND>();
            scales[r] += STAGES * scale_bytes<KIND>();
        }
    }
    wait_for_copies<0>();

    // Two row groups at a time: [spans][tiles][row groups][128].
    float *sums = reinterpret_cast<float *>(room);
    constexpr int AT_ONCE = NT < 2 ? NT : 2, ALL = RT * AT_ONCE * 128;
    const auto folded = [&](int place) {
        float v[SPANS];
#pragma unroll
        for (int k = 0; k < SPANS; k++) v[k] = sums[k * ALL + place];
#pragma unroll
        for (int stride = 1; stride < SPANS; stride *= 2)
#pragma unroll
            for (int k = 0; k < SPANS; k += 2 * stride) v[k] = v[k] + v[k + stride];
        return v[0] * args.factor;
    };
    const Map &map = args.maps[at];
#pragma unroll
    for (int n0 = 0; n0 < NT; n0 += AT_ONCE) {
        __syncthreads();
#pragma unroll
        for (int r = 0; r < RT; r++)
#pragma unroll
            for (int n = 0; n < AT_ONCE; n++)
#pragma unroll
                for (int c = 0; c < 4; c++) sums[span * ALL + (r * AT_ONCE + n) * 128 + c * 32 + lane] = sum[r][n0 + n][c];
        __syncthreads();
        for (int i = threadIdx.x; i < OWN * AT_ONCE * 128; i += 32 * SPANS) {
            const int o = i % 16, r = i / 16 % OWN, row = i / 16 / OWN % 8, n = i / 128 / OWN;
            const int column = (group0 + n0 + n) * 8 + row, output = (block * OWN + r) * 16 + o;
            if (column >= args.rows || output >= map.outputs) continue;
            const int place = (r * AT_ONCE + n) * 128 + (o / 8 * 2 + row % 2) * 32 + o % 8 * 4 + row / 2;
            const float total = folded(place);
            if (GATED) {
                const float value = activated(total, args.gelu) * folded(place + OWN * AT_ONCE * 128);
                reinterpret_cast<half *>(map.out)[row_place(column, output, groups)] = to_half(value * GATED_FACTOR);
            } else {
                reinterpret_cast<float *>(map.out)[(size_t)column * map.outputs + output] =
                    total + (map.bias ? map.bias[output] : 0.0f);
            }
        }
    }
}

// As many blocks share a multiprocessor as their rows leave registers for.
#define SHAPE(KIND, NT, RT, NAME, GATED)                                                                                 \
    extern "C" __global__ void __launch_bounds__(32 * SPANS, NT == 1 || NT * RT <= 2 ? 3 : NT * RT <= 8 && NT < 8 ? 2 : 1) \
        NAME##_##KIND##_##NT##_##RT(const __grid_constant__ MatmulArgs args) {                                           \
        matmul<KIND, NT, RT, GATED>(args);                                                                              \
    }
// The shapes that src/backend/cuda/kernels.rs knows.
#define SHAPES(KIND)                                                                                                    \
    SHAPE(KIND, 1, 1, plain, false)                                                                                     \
    SHAPE(KIND, 2, 1, plain, false)                                                                                     \
    SHAPE(KIND, 2, 2, plain, false)                                                                                     \
    SHAPE(KIND, 4, 1, plain, false)                                                                                     \
    SHAPE(KIND, 4, 2, plain, false)                                                                                     \
    SHAPE(KIND, 4, 4, plain, false)                                                                                     \
    SHAPE(KIND, 8, 1, plain, false)                                                                                     \
    SHAPE(KIND, 8, 2, plain, false)                                                                                     \
    SHAPE(KIND, 8, 4, plain, false)                                                                                     \
    SHAPE(KIND, 1, 2, gated, true)                                                                                      \
    SHAPE(KIND, 1, 4, gated, true)                                                                                      \
    SHAPE(KIND, 2, 2, gated, true)                                                                                      \
    SHAPE(KIND, 2, 4, gated, true)                                                                                      \
    SHAPE(KIND, 4, 2, gated, true)                                                                                      \
    SHAPE(KIND, 4, 4, gated, true)                                                                                      \
    SHAPE(KIND, 8, 2, gated, true)                                                                                      \
    SHAPE(KIND, 8, 4, gated, true)
SHAPES(0)
SHAPES(1)
SHAPES(2)
SHAPES(3)
