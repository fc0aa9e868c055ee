#include "sim/events/rng.h"

/* The finaliser of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
 * generators", OOPSLA 2014, with Stafford's mix 13). */
static inline guint64
mix(guint64 x)
{
    x ^= x >> 30;
    x *= G_GUINT64_CONSTANT(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= G_GUINT64_CONSTANT(0x94d049bb133111eb);
    x ^= x >> 31;
    return x;
}

#define GOLDEN G_GUINT64_CONSTANT(0x9e3779b97f4a7c15)

guint64
zp_rng_bits(guint64 seed, gint32 rank, gint64 counter)
{
    /* Mixed one after the other: a sum of the keys would let (rank + 1, counter) meet
     * (rank, counter + something). */
    guint64 x = mix(seed + GOLDEN);
    x = mix(x + ((guint64)(guint32)rank + 1) * GOLDEN);
    return mix(x + ((guint64)counter + 1) * GOLDEN);
}

gint64
zp_rng_gaussian_ppm(guint64 seed, gint32 rank, gint64 counter)
{
    guint64 x = zp_rng_bits(seed, rank, counter);
    gint64 sum = 0;
    for (int i = 0; i < 3; i++) {
        x += GOLDEN;
        guint64 bits = mix(x);
        sum += (gint64)(bits & 0xffff) + (gint64)(bits >> 16 & 0xffff) +
               (gint64)(bits >> 32 & 0xffff) + (gint64)(bits >> 48);
    }
    /* Mean 12 * 65535 / 2, standard deviation sqrt(65536^2 - 1). */
    return (sum - 6 * G_GINT64_CONSTANT(65535)) * 1000000 / 65536;
}
