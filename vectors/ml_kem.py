"""ML-KEM-768, written from FIPS 203 for golden examples. Slow, and not in constant time: for nothing but that.

The numbers of algorithms are those of the standard. The program's tests have AWS-LC decapsulate what comes out of here.
"""

import hashlib

Q, N, K = 3329, 256, 3
ETA_1, ETA_2, D_U, D_V = 2, 2, 10, 4


def bit_reversed_7(number):
    return int(f"{number:07b}"[::-1], 2)


ZETAS = [pow(17, bit_reversed_7(i), Q) for i in range(128)]
GAMMAS = [pow(17, 2 * bit_reversed_7(i) + 1, Q) for i in range(128)]


def g(data):
    digest = hashlib.sha3_512(data).digest()
    return digest[:32], digest[32:]


def h(data):
    return hashlib.sha3_256(data).digest()


def j(data):
    return hashlib.shake_256(data).digest(32)


def prf(eta, seed, number):
    return hashlib.shake_256(seed + bytes([number])).digest(64 * eta)


def bits(data):
    """Algorithm 4."""
    return [byte >> i & 1 for byte in data for i in range(8)]


def encode(d, numbers):
    """Algorithm 5."""
    whole = sum(number << (d * i) for i, number in enumerate(numbers))
    return whole.to_bytes(32 * d, "little")


def decode(d, data):
    """Algorithm 6."""
    whole, modulus = int.from_bytes(data, "little"), Q if d == 12 else 1 << d
    return [(whole >> (d * i) & (1 << d) - 1) % modulus for i in range(N)]


def compress(d, numbers):
    return [((number << d + 1) + Q) // (2 * Q) % (1 << d) for number in numbers]


def decompress(d, numbers):
    return [(number * 2 * Q + (1 << d)) >> d + 1 for number in numbers]


def sample_ntt(seed):
    """Algorithm 7."""
    stream, found = hashlib.shake_128(seed).digest(3 * 400), []
    for i in range(0, len(stream), 3):
        a, b, c = stream[i : i + 3]
        found += [number for number in (a + 256 * (b % 16), b // 16 + 16 * c) if number < Q]
    assert len(found) >= N, "a longer stream is needed"
    return found[:N]


def sample_cbd(eta, data):
    """Algorithm 8."""
    b = bits(data)
    return [(sum(b[2 * i * eta :][:eta]) - sum(b[2 * i * eta + eta :][:eta])) % Q for i in range(N)]


def ntt(f):
    """Algorithm 9."""
    f, i, length = list(f), 1, 128
    while length >= 2:
        for start in range(0, N, 2 * length):
            zeta, i = ZETAS[i], i + 1
            for at in range(start, start + length):
                t = zeta * f[at + length] % Q
                f[at], f[at + length] = (f[at] + t) % Q, (f[at] - t) % Q
        length //= 2
    return f


def inverse_ntt(f):
    """Algorithm 10."""
    f, i, length = list(f), 127, 2
    while length <= 128:
        for start in range(0, N, 2 * length):
            zeta, i = ZETAS[i], i - 1
            for at in range(start, start + length):
                t = f[at]
                f[at], f[at + length] = (t + f[at + length]) % Q, zeta * (f[at + length] - t) % Q
        length *= 2
    return [number * 3303 % Q for number in f]


def multiply(f, g_hat):
    """Algorithms 11 and 12."""
    product = []
    for i in range(128):
        (a0, a1), (b0, b1) = f[2 * i : 2 * i + 2], g_hat[2 * i : 2 * i + 2]
        product += [(a0 * b0 + a1 * b1 * GAMMAS[i]) % Q, (a0 * b1 + a1 * b0) % Q]
    return product


def add(*polynomials):
    return [sum(numbers) % Q for numbers in zip(*polynomials)]


def subtract(f, other):
    return [(a - b) % Q for a, b in zip(f, other)]


def dot(row, column):
    return add(*(multiply(a, b) for a, b in zip(row, column)))


def matrix(rho):
    return [[sample_ntt(rho + bytes([column, row])) for column in range(K)] for row in range(K)]


def key_gen(d, z):
    """Algorithms 13 and 16: encapsulation key and decapsulation key."""
    rho, sigma = g(d + bytes([K]))
    s = [ntt(sample_cbd(ETA_1, prf(ETA_1, sigma, i))) for i in range(K)]
    e = [ntt(sample_cbd(ETA_1, prf(ETA_1, sigma, K + i))) for i in range(K)]
    t = [add(dot(row, s), noise) for row, noise in zip(matrix(rho), e)]
    public = b"".join(encode(12, f) for f in t) + rho
    return public, b"".join(encode(12, f) for f in s) + public + h(public) + z


def encrypt(public, message, randomness):
    """Algorithm 14."""
    t = [decode(12, public[384 * i : 384 * (i + 1)]) for i in range(K)]
    a = matrix(public[384 * K :])
    y = [ntt(sample_cbd(ETA_1, prf(ETA_1, randomness, i))) for i in range(K)]
    e1 = [sample_cbd(ETA_2, prf(ETA_2, randomness, K + i)) for i in range(K)]
    e2 = sample_cbd(ETA_2, prf(ETA_2, randomness, 2 * K))
    u = [add(inverse_ntt(dot([a[row][i] for row in range(K)], y)), e1[i]) for i in range(K)]
    v = add(inverse_ntt(dot(t, y)), e2, decompress(1, decode(1, message)))
    return b"".join(encode(D_U, compress(D_U, f)) for f in u) + encode(D_V, compress(D_V, v))


def decrypt(private, ciphertext):
    """Algorithm 15."""
    u = [decompress(D_U, decode(D_U, ciphertext[32 * D_U * i :][: 32 * D_U])) for i in range(K)]
    v = decompress(D_V, decode(D_V, ciphertext[32 * D_U * K :]))
    s = [decode(12, private[384 * i : 384 * (i + 1)]) for i in range(K)]
    return encode(1, compress(1, subtract(v, inverse_ntt(dot(s, [ntt(f) for f in u])))))


def encapsulate(public, message):
    """Algorithm 17: ciphertext and shared secret. `message` is drawn at random."""
    secret, randomness = g(message + h(public))
    return encrypt(public, message, randomness), secret


def decapsulate(private, ciphertext):
    """Algorithm 18."""
    public, hashed, z = private[384 * K : -64], private[-64:-32], private[-32:]
    message = decrypt(private, ciphertext)
    secret, randomness = g(message + hashed)
    return secret if encrypt(public, message, randomness) == ciphertext else j(z + ciphertext)
