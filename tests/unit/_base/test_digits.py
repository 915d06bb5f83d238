"""Numbers for people: what may leak is never written smaller than it is, what is left never larger."""

from hypothesis import given, strategies as st

from pufferfish._base.words import at_least, at_most, number, to_the_noise

SIZES = st.floats(1e-5, 1e14)


def read(text: str) -> float:
    return float(text.replace(",", ""))


@given(SIZES)
def test_bounds_are_rounded_to_their_side(value: float) -> None:
    assert read(at_least(value)) * (1 - 1.001e-6) <= value <= read(at_most(value)) * (1 + 1.001e-6)
    assert read(at_least(value)) <= read(number(value)) <= read(at_most(value))
    assert abs(read(at_most(value)) / value - 1) <= 1e-3


@given(st.integers(1, 9_999), st.integers(-6, 6))
def test_few_digits_stay_as_they_are(digits: int, power: int) -> None:
    value = float(f"{digits}e{power}")
    if 1e-6 <= value:
        assert read(number(value)) == read(at_most(value)) == read(at_least(value)) == value


def test_counts_have_no_decimals_and_shares_have_those_that_say_something() -> None:
    assert to_the_noise(5_432.0, 7.6, whole=True) == "5,432"
    assert to_the_noise(5_432.0, 7.6) == "5,432.00"
    assert to_the_noise(0.448719, 0.0038) == "0.44872"
    assert to_the_noise(0.448719, 0.0038, digits=2) == "0.4487"
