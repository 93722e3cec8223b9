"""Prints the tables of `src/elementary/coefficients.rs`: Chebyshev interpolants in 60-digit arithmetic.

    python3 scripts/elementary_coefficients.py > src/elementary/coefficients.rs && rustfmt src/elementary/coefficients.rs

Each table holds the highest power first, for Horner's rule; the comment gives the error of the interpolant before its
coefficients are rounded. Needs `mpmath`.
"""

import struct

from mpmath import asin, atanh, chebyfit, erf, erfc, exp, floor, log, mp, mpf, nstr, pi, sin, sqrt

mp.dps = 60


def rounded(x):
    return struct.unpack("f", struct.pack("f", float(x)))[0]


def single(x):
    value = rounded(x)
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if rounded(text) == value:
            return literal(text)


def literal(text):
    return text if any(c in text for c in ".e") else text + ".0"


def series(x, terms):
    return sum(c * x**i for i, c in enumerate(terms))


def exponential(r):  # exp(r) = 1 + r + r²·f(r)
    return (exp(r) - 1 - r) / r**2 if abs(r) > 1e-10 else series(r, [mpf(1) / 2, mpf(1) / 6, mpf(1) / 24, mpf(1) / 120])


def sine(z):  # sin(r) = r + r³·f(r²)
    r = sqrt(z)
    return (sin(r) - r) / r**3 if z > 1e-16 else series(z, [-mpf(1) / 6, mpf(1) / 120, -mpf(1) / 5040])


def logarithm(z):  # 2 atanh(s) = 2s + s³·f(s²)
    s = sqrt(z)
    return (2 * atanh(s) - 2 * s) / s**3 if z > 1e-16 else series(z, [mpf(2) / 3, mpf(2) / 5, mpf(2) / 7])


def arcsine(z):  # asin(s) = s + s³·f(s²)
    s = sqrt(z)
    return (asin(s) - s) / s**3 if z > 1e-16 else series(z, [mpf(1) / 6, mpf(3) / 40, mpf(15) / 336])


def error_centre(z):  # erf(x) = x·f(x²)
    x = sqrt(z)
    return erf(x) / x if z > 1e-16 else 2 / sqrt(pi) * series(z, [1, -mpf(1) / 3, mpf(1) / 10])


def error_tail(u):  # 1 - erf(x) = exp(-x²)·f((x - 3) / (x + 3))
    x = 3 * (1 + u) / (1 - u)
    return erfc(x) * exp(x * x)


half_ln2 = log(mpf(2)) / 2 * mpf("1.01")
half_pi = (pi / 2 * mpf("1.005")) ** 2
octave = ((sqrt(mpf(2)) - 1) / (sqrt(mpf(2)) + 1)) ** 2 * mpf("1.02")
quarter = mpf("0.2501")
tail = lambda x: (mpf(x) - 3) / (mpf(x) + 3)

TABLES = [  # name, formula, function, interval and number of terms in f32, the same in f64
    ("EXP", "`exp(r) = 1 + r + r²·f(r)`, |r| ≤ ln 2 / 2", exponential, ((-half_ln2, half_ln2), 6), ((-half_ln2, half_ln2), 10)),
    ("SIN", "`sin(r) = r + r³·f(r²)`, |r| ≤ π / 2", sine, ((0, half_pi), 4), ((0, half_pi), 8)),
    ("LN", "`2 atanh(s) = 2s + s³·f(s²)`, |s| ≤ 3 - 2√2", logarithm, ((0, octave), 4), ((0, octave), 7)),
    ("ASIN", "`asin(s) = s + s³·f(s²)`, |s| ≤ 1/2", arcsine, ((0, quarter), 6), ((0, quarter), 13)),
    ("ERF", "`erf(x) = x·f(x²)`, |x| ≤ 1", error_centre, ((0, 1), 7), ((0, 1), 12)),
    ("ERF_TAIL", "`1 - erf(x) = exp(-x²)·f((x - 3) / (x + 3))`, 1 ≤ x ≤ 4 in `f32`, 6 in `f64`", error_tail,
     ((tail(1), tail(4)), 8), ((tail(1), tail(6)), 15)),
]


def table(scalar, shown, name, function, interval, terms):
    coefficients, error = chebyfit(function, list(interval), terms, error=True)
    print(f"    // Error {nstr(error, 2)}.")
    print(f"    pub(crate) const {name}: [{scalar}; {terms}] = [{', '.join(shown(c) for c in coefficients)}];")


def parts(x, bits):
    """`x` as a sum: pieces of the given numbers of bits, so that small integers times a piece are exact."""
    pieces = []
    for b in bits:
        step = mpf(2) ** (b - 1 - int(floor(log(x, 2))))
        pieces.append(floor(x * step) / step)
        x -= pieces[-1]
    return pieces + [x]


print("//! Polynomial coefficients, highest power first; made by `scripts/elementary_coefficients.py`.\n")
print("// Interpolants come close to famous constants without being them.\n#![allow(clippy::approx_constant)]\n")
for scalar, shown, column in (("f32", single, 0), ("f64", lambda c: literal(repr(float(c))), 1)):
    print(f"/// For `{scalar}`.\npub(super) mod {'single' if scalar == 'f32' else 'double'} {{")
    for name, formula, function, *columns in TABLES:
        print(f"    // {formula}.")
        table(scalar, shown, name, function, *columns[column])
    ln2 = parts(log(mpf(2)), [13] if scalar == "f32" else [32])
    print("    // ln 2 in two parts; integers up to 2¹¹ times the first are exact.")
    print(f"    pub(crate) const LN_2: [{scalar}; 2] = [{', '.join(shown(p) for p in ln2)}];")
    print("    // π and π/2, each as its nearest value and what is missing.")
    for name, x in (("PI", pi), ("HALF_PI", pi / 2)):
        nearest = mpf(rounded(x)) if scalar == "f32" else mpf(float(x))
        print(f"    pub(crate) const {name}_REST: {scalar} = {shown(x - nearest)};")
    if scalar == "f32":
        rest = pi - mpf(rounded(pi)) - mpf(rounded(pi - mpf(rounded(pi))))
        print("    // What is still missing of π.")
        print(f"    pub(crate) const PI_LAST: f32 = {shown(rest)};")
    else:
        pieces = ", ".join(shown(p) for p in parts(pi, [33, 33, 33]))
        print("    // π in parts of 33 bits; multiples of ½ up to 2¹⁹ times one of the first three are exact.")
        print(f"    pub(crate) const PI: [f64; 4] = [{pieces}];")
    print("}\n")
