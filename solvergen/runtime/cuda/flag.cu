/* Does a step find its flag set? `flag` is one number of `width` bytes, of any type; `is_float` says that
   its first bit alone means nothing, as in floating point. `skip` becomes 1 if it isn't zero. */

extern "C" __global__ void __launch_bounds__(32)
sg_flag(const unsigned char *flag, int width, int is_float, int *skip) {
    if (threadIdx.x != 0) {
        return;
    }
    unsigned long long word = 0;
    for (int k = 0; k < width; ++k) {
        word |= (unsigned long long)flag[k] << 8 * k;
    }
    if (is_float) {
        word &= ~(1ull << (8 * width - 1));
    }
    if (word != 0) {
        *skip = 1;
    }
}
