// Arithmetic of every kind that CUDA has words for, so that decoding meets what a compiler makes of it.
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;

extern "C" {

__global__ void rounding(float *f, double *d, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = f[i], b = f[i + n], c = f[i + 2 * n];
    double x = d[i], y = d[i + n], z = d[i + 2 * n];
    f[i] = __fadd_rn(a, b) + __fadd_rz(a, b) + __fadd_rd(a, b) + __fadd_ru(a, b);
    f[i + n] = __fsub_rn(a, b) * __fsub_rz(a, b) * __fsub_rd(a, b) * __fsub_ru(a, b);
    f[i + 2 * n] = __fmul_rn(a, b) - __fmul_rz(a, b) - __fmul_rd(a, b) - __fmul_ru(a, b);
    f[i + 3 * n] = __fdiv_rn(a, b) + __fdiv_rz(a, b) + __fdiv_rd(a, b) + __fdiv_ru(a, b);
    f[i + 4 * n] = __fsqrt_rn(a) + __fsqrt_rz(a) + __fsqrt_rd(a) + __fsqrt_ru(a);
    f[i + 5 * n] = __frcp_rn(a) + __frcp_rz(a) + __frcp_rd(a) + __frcp_ru(a);
    f[i + 6 * n] = __fmaf_rn(a, b, c) + __fmaf_rz(a, b, c) + __fmaf_rd(a, b, c) + __fmaf_ru(a, b, c);
    d[i] = __dadd_rn(x, y) + __dadd_rz(x, y) + __dadd_rd(x, y) + __dadd_ru(x, y);
    d[i + n] = __dmul_rn(x, y) - __dmul_rz(x, y) - __dmul_rd(x, y) - __dmul_ru(x, y);
    d[i + 2 * n] = __ddiv_rn(x, y) + __ddiv_rz(x, y) + __ddiv_rd(x, y) + __ddiv_ru(x, y);
    d[i + 3 * n] = __dsqrt_rn(x) + __dsqrt_rz(x) + __dsqrt_rd(x) + __dsqrt_ru(x);
    d[i + 4 * n] = __drcp_rn(x) + __drcp_rz(x) + __drcp_rd(x) + __drcp_ru(x);
    d[i + 5 * n] = __fma_rn(x, y, z) + __fma_rz(x, y, z) + __fma_rd(x, y, z) + __fma_ru(x, y, z);
}

__global__ void plain(float *f, double *d, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = f[i], b = f[i + n], c = f[i + 2 * n];
    double x = d[i], y = d[i + n], z = d[i + 2 * n];
    f[i] = a * b + c - a / b + sqrtf(a) + __saturatef(b) + 1.0f / c - -a * b;
    f[i + n] = fminf(a, b) + fmaxf(b, c) + fabsf(c) + copysignf(a, b) + (signbit(a) ? a : b) + fminf(fminf(a, b), c);
    f[i + 2 * n] = floorf(a) + ceilf(b) + truncf(c) + rintf(a) + roundf(b) + nearbyintf(c) + (isnan(a) ? b : c);
    f[i + 3 * n] = (isfinite(a) && a > b || !(b <= c)) + (a != b) + (a == c) + (isinf(a) ? 3 : 4) + (a >= c) + (a < c);
    f[i + 4 * n] = fmaxf(fmaxf(a, b), c) + fmaxf(fabsf(a), fabsf(b)) + fdimf(a, b);
    d[i] = x * y + z - x / y + sqrt(x) + 1.0 / z - -x * y;
    d[i + n] = fmin(x, y) + fmax(y, z) + fabs(z) + copysign(x, y) + (signbit(x) ? x : y);
    d[i + 2 * n] = floor(x) + ceil(y) + trunc(z) + rint(x) + round(y) + (isnan(x) ? y : z);
    d[i + 3 * n] = (isfinite(x) && x > y || !(y <= z)) + (x != y) + (isinf(x) ? 3 : 4) + (x >= z);
    float4 v = ((float4 *)f)[i], w = ((float4 *)f)[i + n];
    v.x = v.x * w.x + a, v.y = v.y * w.y + b, v.z = v.z * w.z + c, v.w = v.w * w.w + a;
    ((float4 *)f)[i + 5 * n] = v;
}

__global__ void conversions(float *f, double *d, int *s, u32 *u, s64 *sl, u64 *ul, short *h, char *c, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = f[i];
    double x = d[i];
    s[i] = __float2int_rn(a) + __float2int_rz(a) + __float2int_rd(a) + __float2int_ru(a) + (int)x + (int)a;
    s[i + n] = __double2int_rn(x) + __double2int_rd(x) + __double2int_ru(x) + __float_as_int(a) + __double2hiint(x);
    u[i] = __float2uint_rn(a) + __float2uint_rz(a) + __float2uint_rd(a) + __float2uint_ru(a) + (u32)x + (u32)a;
    u[i + n] = __double2uint_rn(x) + __double2uint_rd(x) + __double2uint_ru(x) + __double2loint(x);
    sl[i] = __float2ll_rn(a) + __float2ll_rz(a) + __float2ll_rd(a) + __float2ll_ru(a) + (s64)x;
    sl[i + n] = __double2ll_rn(x) + __double2ll_rd(x) + __double2ll_ru(x) + __double_as_longlong(x);
    ul[i] = __float2ull_rn(a) + __float2ull_rz(a) + __float2ull_rd(a) + __float2ull_ru(a) + (u64)x;
    ul[i + n] = __double2ull_rn(x) + __double2ull_rd(x) + __double2ull_ru(x);
    int k = s[i + 2 * n];
    u32 m = u[i + 2 * n];
    s64 p = sl[i + 2 * n];
    u64 q = ul[i + 2 * n];
    f[i] = __int2float_rn(k) + __int2float_rz(k) + __int2float_rd(k) + __int2float_ru(k) + (float)h[i] + (float)c[i];
    f[i + n] = __uint2float_rn(m) + __uint2float_rz(m) + __uint2float_rd(m) + __uint2float_ru(m);
    f[i + 2 * n] = __ll2float_rn(p) + __ll2float_rz(p) + __ll2float_rd(p) + __ll2float_ru(p);
    f[i + 3 * n] = __ull2float_rn(q) + __ull2float_rz(q) + __ull2float_rd(q) + __ull2float_ru(q);
    f[i + 4 * n] = __double2float_rn(x) + __double2float_rz(x) + __double2float_rd(x) + __double2float_ru(x);
    d[i] = (double)a + k + m + __ll2double_rn(p) + __ll2double_rz(p) + __ll2double_rd(p) + __ll2double_ru(p);
    d[i + n] = __ull2double_rn(q) + __ull2double_rz(q) + __ull2double_rd(q) + __ull2double_ru(q) + (double)h[i];
    d[i + 2 * n] = __hiloint2double(k, m) + __longlong_as_double(p) + __int_as_float(k);
    h[i + n] = (short)k + (short)a + (short)c[i] + (unsigned char)p;
    c[i + n] = (char)k + (char)x + (signed char)h[i] + (char)q;
    sl[i + 3 * n] = k, ul[i + 3 * n] = m, sl[i + 4 * n] = h[i], ul[i + 4 * n] = (unsigned short)h[i];
    unsigned short half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(a));
    asm("cvt.f32.f16 %0, %1;" : "=f"(a) : "h"(half));
    f[i + 5 * n] = a;
}

__global__ void integers(int *s, u32 *u, s64 *sl, u64 *ul, short *h, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    int a = s[i], b = s[i + n], c = s[i + 2 * n];
    u32 x = u[i], y = u[i + n], z = u[i + 2 * n];
    s64 p = sl[i], q = sl[i + n];
    u64 v = ul[i], w = ul[i + n];
    short g = h[i], k = h[i + n];
    s[i] = a * b + c - a / b + a % b + (a >> (b & 31)) + (a << 3) + min(a, b) + max(b, c) + abs(a) - ~b;
    s[i + n] = a / 7 + b % 10 + c / 16 + __mulhi(a, b) + __mul24(a, b) + __sad(a, b, z) + __clz(a) + __ffs(b) + __popc(c);
    s[i + 2 * n] = __hadd(a, b) + __rhadd(a, b) + (a > b && b != c || c <= a) + (a < 0) + -a + __brev(b) % 9;
    u[i] = x * y + z - x / y + x % y + (x >> (y & 31)) + (x << z) + min(x, y) + max(y, z) + (x ^ y & z | ~x);
    u[i + n] = x / 7 + y % 10 + z / 16 + __umulhi(x, y) + __umul24(x, y) + __usad(x, y, z) + __brev(x) + (x > y) + (y <= z);
    u[i + 2 * n] = __byte_perm(x, y, 0x5140) + __byte_perm(x, y, z) + __funnelshift_l(x, y, z) + __funnelshift_r(x, y, 5);
    u[i + 3 * n] = __funnelshift_lc(x, y, z) + __funnelshift_rc(x, y, z) + (x << 7 | x >> 25) + ((x >> 5) & 31) + (z >> 24);
    u[i + 4 * n] = (x & ~(31 << 4)) | ((y & 31) << 4);
    sl[i] = p * q - p / q + p % q + (p >> (a & 63)) + (p << 5) + min(p, q) + max(p, q) + llabs(p) + -q + a * (s64)b;
    sl[i + n] = __mul64hi(p, q) + __clzll(p) + __popcll(q) + __ffsll(p) + (p > q) + (p == q) + p / 10 + a + p / 4096;
    ul[i] = v * w - v / w + v % w + (v >> (x & 63)) + (v << 5) + min(v, w) + max(v, w) + x * (u64)y + (v ^ w | ~v & 255);
    ul[i + n] = __umul64hi(v, w) + __brevll(v) + (v > w) + v / 10 + v % 1000 + (v << 13 | v >> 51) + (u32)w + x;
    h[i] = g * k + g / k + g % k + (g >> 3) + min(g, k) + max(g, k) + (unsigned short)g / (unsigned short)k;
    h[i + n] = g - k + (g > k) + (g & 0x7f) + (g ^ k) + abs(g) - ~k;
}

__global__ void reductions(float *f, double *d, int *s, int n) {
    __shared__ float part[32];
    const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    float sum = 0, largest = -1;
    for (int k = i; k < n; k += gridDim.x * blockDim.x) sum += f[k], largest = fmaxf(largest, fabsf(f[k]));
    for (int w = 16; w; w >>= 1) {
        sum += __shfl_xor_sync(~0u, sum, w);
        largest = fmaxf(largest, __shfl_down_sync(~0u, largest, w));
    }
    if (lane == 0) part[threadIdx.x >> 5] = sum * largest;
    __syncthreads();
    double total = threadIdx.x < 32 ? part[threadIdx.x] : 0;
    for (int w = 16; w; w >>= 1) total += __shfl_down_sync(~0u, total, w);
    s64 bits = __double_as_longlong(total);
    int odd = (bits & 1) && total > 0.5 ? lane : -lane;
    if (threadIdx.x == 0) d[blockIdx.x] = total * odd, atomicAdd(s, odd), atomicMax(s + 1, (int)sum);
}
}
