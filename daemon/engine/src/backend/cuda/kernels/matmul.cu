// Products of quantized weights and half-precision rows on the matrix units, summed in single precision.
//
// The inputs are cut into eight spans. A span's sum runs in order, and the spans' sums are folded as a binary tree,
// whichever warp holds them. So an output of a row is the same to the bit whatever the number of rows, the shape of the
// block and the other rows are.
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
    const half *x; // [rows, inputs]
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

__device__ inline void multiply(float *c, uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

__device__ inline float activated(float x, int gelu) {
    if (gelu) return 0.5f * x * (1.0f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
    return x / (1.0f + __expf(-x));
}

// NT groups of 8 rows, RT tiles per warp, KW of the block's 8 warps share a tile. GATED: the tiles are one of each map.
template <int KIND, int NT, int RT, int KW, bool GATED> __device__ inline void matmul(const MatmulArgs &args) {
    constexpr int RW = 8 / KW, PER_WARP = SPANS / KW;
    constexpr int AHEAD = KIND == HALF ? 2 : NT == 1 ? (RT == 1 ? 4 : 2) : NT <= 4 ? 2 : 1;
    // Loads in flight are worth less than blocks in flight: loading ahead of these as well was slower, for its registers.
    __shared__ float partial[8][RT][128];
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
    const int kw = warp % KW, rw = warp / KW;

    int block = blockIdx.x, at = 0;
    if (!GATED) {
        for (;; at++) {
            int blocks = (args.maps[at].tiles + RT * RW - 1) / (RT * RW);
            if (block < blocks || at == args.count - 1) break;
            block -= blocks;
        }
    }
    const int first = GATED ? block * RW + rw : (block * RW + rw) * RT;
    const uint8_t *quants[RT], *scales[RT];
    size_t chunk0[RT];
#pragma unroll
    for (int r = 0; r < RT; r++) {
        const Map &map = args.maps[GATED ? r : at];
        int tile = min(GATED ? first : first + r, map.tiles - 1);
        quants[r] = map.quants;
        scales[r] = map.scales;
        chunk0[r] = (size_t)tile * args.steps;
    }
    const int column0 = blockIdx.y * NT * 8;
    const half *x[NT];
    bool there[NT];
#pragma unroll
    for (int n = 0; n < NT; n++) {
        int column = column0 + n * 8 + g;
        there[n] = column < args.rows;
        x[n] = args.x + (size_t)(there[n] ? column : 0) * args.inputs + 16 * t;
    }

    let_next_start();
    // The weights are nobody's output: the first of them are on their way while others end.
    Raw<KIND> raw[AHEAD][RT];
    {
        const int begin = args.steps * (kw * PER_WARP) / SPANS, end = args.steps * (kw * PER_WARP + 1) / SPANS;
#pragma unroll
        for (int u = 0; u < AHEAD; u++) {
            if (begin + u >= end) continue;
#pragma unroll
            for (int r = 0; r < RT; r++) raw[u][r].load(quants[r], scales[r], chunk0[r] + begin + u, lane);
        }
    }
    wait_for_others();

    float sum[RT][NT][4], before[PER_WARP > 1 ? RT : 1][PER_WARP > 1 ? NT : 1][4];
#pragma unroll
    for (int s = 0; s < PER_WARP; s++) {
#pragma unroll
        for (int r = 0; r < RT; r++)
#pragma unroll
            for (int n = 0; n < NT; n++)
#pragma unroll
                for (int c = 0; c < 4; c++) sum[r][n][c] = 0.0f;
        const int span = kw * PER_WARP + s;
        const int begin = args.steps * span / SPANS, end = args.steps * (span + 1) / SPANS;
        for (int step = begin; step < end; step += AHEAD) {
            uint4 b[AHEAD][NT][2];
#pragma unroll
            for (int u = 0; u < AHEAD; u++) {
                if (step + u >= end || (s == 0 && step == begin)) continue;
#pragma unroll
                for (int r = 0; r < RT; r++) raw[u][r].load(quants[r], scales[r], chunk0[r] + step + u, lane);
            }
#pragma unroll
            for (int u = 0; u < AHEAD; u++) {
                bool inside = step + u < end && (step + u) * 64 + 16 * t < args.inputs;
#pragma unroll
                for (int n = 0; n < NT; n++) {
                    b[u][n][0] = b[u][n][1] = make_uint4(0, 0, 0, 0);
                    if (inside && there[n]) {
                        const uint4 *from = reinterpret_cast<const uint4 *>(x[n] + (step + u) * 64);
                        b[u][n][0] = from[0];
                        b[u][n][1] = from[1];
                    }
                }
            }
#pragma unroll
            for (int u = 0; u < AHEAD; u++) {
                if (step + u >= end) continue;
#pragma unroll
                for (int r = 0; r < RT; r++) {
                    uint32_t lower[8], upper[8];
                    unpack(raw[u][r], lower, upper);
#pragma unroll
                    for (int n = 0; n < NT; n++) {
                        const uint4 p = b[u][n][0], q = b[u][n][1];
                        multiply(sum[r][n], lower[0], upper[0], lower[1], upper[1], p.x, p.y);
                        multiply(sum[r][n], lower[2], upper[2], lower[3], upper[3], p.z, p.w);
                        multiply(sum[r][n], lower[4], upper[4], lower[5], upper[5], q.x, q.y);
                        multiply(sum[r][n], lower[6], upper[6], lower[7], upper[7], q.z, q.w);
                    }
                }
            }
        }
        if constexpr (PER_WARP > 1) {
            static_assert(PER_WARP == 2, "the tree is written out for pairs");
#pragma unroll
            for (int r = 0; r < RT; r++)
#pragma unroll
                for (int n = 0; n < NT; n++)
#pragma unroll
                    for (int c = 0; c < 4; c++) {
                        if (s == 0) before[r][n][c] = sum[r][n][c];
                        else sum[r][n][c] = before[r][n][c] + sum[r][n][c];
                    }
        }
    }

#pragma unroll
    for (int n = 0; n < NT; n++) {
        if (n > 0) __syncthreads();
#pragma unroll
        for (int r = 0; r < RT; r++)
#pragma unroll
            for (int c = 0; c < 4; c++) partial[warp][r][c * 32 + lane] = sum[r][n][c];
        __syncthreads();
        for (int i = threadIdx.x; i < RW * 128 * (GATED ? 1 : RT); i += 256) {
            const int e = i & 127, r0 = GATED ? 0 : (i >> 7) % RT, w = GATED ? i >> 7 : (i >> 7) / RT;
            float total[GATED ? 2 : 1];
#pragma unroll
            for (int r = 0; r < (GATED ? 2 : 1); r++) {
                float v[KW];
#pragma unroll
                for (int k = 0; k < KW; k++) v[k] = partial[w * KW + k][GATED ? r : r0][e];
#pragma unroll
                for (int stride = 1; stride < KW; stride *= 2)
#pragma unroll
                    for (int k = 0; k < KW; k += 2 * stride) v[k] = v[k] + v[k + stride];
                total[r] = v[0] * args.factor;
            }
            const int c = e >> 5, l = e & 31;
            const int column = column0 + n * 8 + 2 * (l & 3) + (c & 1);
            const int tile = GATED ? block * RW + w : (block * RW + w) * RT + r0;
            const int output = tile * 16 + (l >> 2) + 8 * (c >> 1);
            const Map &map = args.maps[GATED ? 0 : at];
            if (column >= args.rows || output >= map.outputs) continue;
            const size_t place = (size_t)column * map.outputs + output;
            if (GATED) {
                float value = activated(total[0], args.gelu) * total[GATED ? 1 : 0];
                reinterpret_cast<half *>(map.out)[place] = to_half(value * GATED_FACTOR);
            } else {
                float bias = map.bias ? map.bias[output] : 0.0f;
                reinterpret_cast<float *>(map.out)[place] = total[0] + bias;
            }
        }
    }
}

#define SHAPE(KIND, NT, RT, KW, NAME, GATED)                                                                             \
    extern "C" __global__ void __launch_bounds__(256, NT == 4 && KW == 8 && KIND != HALF ? 2 : 1) NAME##_##KIND##_##NT##_##RT##_##KW(                               \
        const __grid_constant__ MatmulArgs args) {                                                                      \
        matmul<KIND, NT, RT, KW, GATED>(args);                                                                          \
    }
// The shapes that src/backend/cuda/matmul.rs chooses from.
#define SHAPES(KIND)                                                                                                    \
    SHAPE(KIND, 1, 1, 8, plain, false)                                                                                  \
    SHAPE(KIND, 2, 1, 8, plain, false)                                                                                  \
    SHAPE(KIND, 2, 2, 8, plain, false)                                                                                  \
    SHAPE(KIND, 4, 1, 8, plain, false)                                                                                  \
    SHAPE(KIND, 4, 2, 8, plain, false)                                                                                  \
    SHAPE(KIND, 4, 2, 4, plain, false)                                                                                  \
    SHAPE(KIND, 8, 1, 8, plain, false)                                                                                  \
    SHAPE(KIND, 8, 2, 8, plain, false)                                                                                  \
    SHAPE(KIND, 8, 2, 4, plain, false)                                                                                  \
    SHAPE(KIND, 1, 2, 8, gated, true)                                                                                   \
    SHAPE(KIND, 2, 2, 8, gated, true)                                                                                   \
    SHAPE(KIND, 4, 2, 8, gated, true)                                                                                   \
    SHAPE(KIND, 4, 2, 4, gated, true)                                                                                   \
    SHAPE(KIND, 8, 2, 8, gated, true)                                                                                   \
    SHAPE(KIND, 8, 2, 4, gated, true)
SHAPES(0)
SHAPES(1)
SHAPES(2)
SHAPES(3)
