"""Prime factors of the numbers that constants of programs are made of: doubles, and products of a few of them."""

from __future__ import annotations

import math
from functools import lru_cache

_SMALL = 1 << 13
_STEPS = 1 << 17
"""How long a factor is looked for: those below some ten digits are found."""
_WITNESSES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)


@lru_cache(maxsize=1024)
def prime_powers(number: int) -> tuple[tuple[int, int], ...]:
    """A positive number as powers of primes, in order; a large factor that is not found stays in one piece.

    A square of such a piece is told as one.
    """
    found: dict[int, int] = {}
    divisor = 2
    while divisor < _SMALL and divisor * divisor <= number:
        while number % divisor == 0:
            number //= divisor
            found[divisor] = found.get(divisor, 0) + 1
        divisor += 1
    for factor in _large_factors(number) if number > 1 else ():
        found[factor] = found.get(factor, 0) + 1
    return tuple(sorted(found.items()))


def _large_factors(number: int) -> list[int]:
    root = math.isqrt(number)
    if root * root == number:
        return 2 * _large_factors(root)
    if number < _SMALL * _SMALL or _is_prime(number):
        return [number]
    divisor = _divisor(number)
    return [number] if divisor is None else [*_large_factors(divisor), *_large_factors(number // divisor)]


def _is_prime(number: int) -> bool:
    """Whether a number without small divisors passes for a prime (Miller and Rabin)."""
    odd = number - 1
    twos = (odd & -odd).bit_length() - 1
    odd >>= twos
    return all(_passes(pow(base, odd, number), twos, number) for base in _WITNESSES)


def _passes(power: int, twos: int, number: int) -> bool:
    return power == 1 or any(pow(power, 1 << step, number) == number - 1 for step in range(twos))


def _divisor(number: int) -> int | None:
    """A divisor of a composite number by Pollard's rho with Brent's cycles; None where none is found soon."""
    for shift in (1, 3):
        slow = fast = 2
        product, length, taken = 1, 1, 0
        while taken < _STEPS:
            slow = fast
            for step in range(length):
                fast = (fast * fast + shift) % number
                product = product * abs(slow - fast) % number
                if step % 128 == 127 or step == length - 1:
                    common = math.gcd(product, number)
                    if 1 < common < number:
                        return common
                    if common == number:
                        break
            else:
                taken, length = taken + length, 2 * length
                continue
            break
    return None
