// One of everything that a parser of NVRTC's PTX should have seen. It computes nothing that makes sense.
extern "C" {

__constant__ float table[4] = {1.0f, 2.0f, 3.0f, 4.0f};
__constant__ double doubles[3] = {1.0, -2.0, 3.0};
__device__ int counter = 7;
__device__ unsigned char bytes[5] = {1, 2, 3, 255, 0};
__device__ double zeros[8];
__shared__ float fixed[256];

struct Mixed {
    int a;
    float b[3];
    double c;
    short d;
};

__device__ float polynomial(float x, int degree) {
    float y = x;
    for (int i = 0; i < degree; i++) y = y * x + table[i & 3];
    return y;
}

__global__ void __launch_bounds__(256, 4)
reduce(float *out, const float *in, int n, Mixed mixed, bool flag, char letter, unsigned short small) {
    extern __shared__ double dynamic[];
    __shared__ float part[32];
    __shared__ __align__(16) int2 pairs[7];
    const unsigned all = ~0u, thread = threadIdx.x;
    const int i = blockIdx.x * blockDim.x + thread;

    // Local memory, shared memory of all kinds, parameters of all sizes.
    float x = i < n ? in[i] : 0;
    float local[8];
    for (int k = 0; k < 8; k++) local[k] = x * k;
    fixed[thread] = x;
    dynamic[thread] = x + mixed.c + mixed.b[1];
    pairs[thread % 7].x = mixed.d + letter + small + flag;
    __syncthreads();
    x = local[(int)x & 7] + fixed[255 - thread] + dynamic[thread ^ 1] + pairs[thread & 3].x;

    // Warps.
    for (int d = 16; d; d >>= 1) x += __shfl_xor_sync(all, x, d);
    for (int d = 16; d; d >>= 1) x += __shfl_down_sync(all, x, d, 16);
    if (thread % 32 == 0) part[thread / 32] = x;
    __syncthreads();
    unsigned votes = __ballot_sync(all, x > 0) + __any_sync(all, x > 1) + __all_sync(all, x > 1);
    votes += __activemask();

    // Atomics.
    if (thread == 0) {
        atomicAdd(out, part[0]);
        atomicMax(&counter, (int)votes);
        atomicCAS((int *)out + 1, 3, 4);
        atomicExch((int *)out + 2, 9);
        atomicInc((unsigned *)out + 3, 7);
    }
    __threadfence();

    // Variables, float64, directed rounding.
    out[i] = polynomial(x, n) + bytes[i % 5] + zeros[i & 7] + doubles[i % 3];
    double z = sqrt((double)x) + fma((double)x, 2.0, 1.0) + __dadd_rz(x, x) + rint(x) + floorf(x);
    z += (float)(unsigned long long)&zeros[3] + (float)(unsigned long long)&fixed[3];

    // Inline assembly: scopes, several statements on a line and one over two, numbers in other bases.
    unsigned a, lane, b;
    asm volatile("{ .reg .u32 t; .reg .pred p; setp.ne.u32 p, %1, 3; mov.u32 t, %1;"
                 " @p add.u32 %0, t, 0x1F; @!p mov.u32 %0, 012; }" : "=r"(a) : "r"(votes));
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    asm volatile("{ .reg .pred p, q; setp.lt.u32 p|q, %1, 5; bra over;\n"
                 "selp.u32 %0, 1,\n 2, q;\n over: mov.u32 %0, 0b11U; }" : "=r"(b) : "r"(lane));
    out[i + n] = z + a + lane + b;
    out[clock64() & 1] = 1.5f;

    // Control flow, wide and cached accesses, integers.
    switch (n) {
    case 1: out[0] = 1; break;
    case 2: out[1] = in[3]; break;
    case 3: out[2] = 5; break;
    case 4: out[5] = in[9]; break;
    case 5: out[55] = in[91]; break;
    case 6: out[56] = in[19] + 7; break;
    default: __trap();
    }
    ((float4 *)out)[5] = ((const float4 *)in)[2];
    ((double2 *)out)[7] = ((const double2 *)in)[2];
    __stcs(out + 9, __ldg(in + 5));
    ((volatile int *)out)[0] = 3;
    out[3] = __umul64hi(n, 0x123456789abcdefull);
    out[4] = __popc(n) + __clz(n) + __ffs(n) + __brev(n) + __byte_perm(n, 3, 0x4321) +
             __funnelshift_l(n, 3, 4);
}

__global__ void generic(void *p, int k) {
    __shared__ int words[4];
    int *q = k ? (int *)p : words;
    q[threadIdx.x] = k;
    __syncthreads();
    ((int *)p)[9] = q[0];
    if (k == 77) asm volatile("exit;");
    __nanosleep(5);
}

__global__ void empty() {}

__global__ void __maxnreg__(64) limited(float *p) { p[0] = 1; }

}
