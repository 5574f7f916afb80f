"""Numbers in the words of a person: no exponent that a reader has to undo."""

from __future__ import annotations

import pytest

from noisewise.artifact.readable_numbers import probability, probability_range, readable
from noisewise.inference.summary_table import four_digits


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (38012.4, 4, "38,012"),
        (-38012.4, 4, "-38,012"),
        (9999.6, 4, "10,000"),
        (9999.4, 4, "9999"),
        (2024.0, 4, "2024"),
        (999_999.6, 4, "1,000,000"),
        (87_773_123.0, 4, "87,770,000"),
        (12_345.67, 6, "12,345.7"),
        (0.123456, 4, "0.1235"),
        (0.0, 4, "0"),
        (1.5e-7, 4, "1.5e-07"),
        (2.5e16, 4, "2.5e+16"),
        (float("nan"), 4, "nan"),
        (float("-inf"), 4, "-inf"),
    ],
)
def test_readable(value: float, digits: int, text: str) -> None:
    assert readable(value, digits) == text


def test_every_number_keeps_its_digits() -> None:
    for exponent in range(-12, 20):
        for mantissa in (1.0, 1.2345, 9.9996):
            value = mantissa * 10.0**exponent
            read = float(readable(value).replace(",", ""))
            assert abs(read / value - 1) <= 0.5e-3


def test_probabilities() -> None:
    said = [probability(p) for p in (2.58e-104, 0.0, 0.25, 0.00012, 1.0, 1 - 1e-12)]
    assert said == [
        "below 0.0001", "below 0.0001", "0.25", "0.00012", "above 0.9999", "above 0.9999",
    ]  # fmt: skip
    assert probability_range(1e-9, 0.5) == "below 0.0001 to 0.5"
    assert probability_range(1e-9, 1e-7) == "below 0.0001"


def test_a_column_of_a_summary_has_no_exponents() -> None:
    assert [four_digits(v) for v in (38012.4, 2.0, 8.013e6)] == ["38,012", "2.000", "8,013,000"]


@pytest.mark.parametrize("digits", [2, 3, 4])
@pytest.mark.parametrize("value", [0.5, 12.3, 987.6, 1234.5, 9183.4, 9999.7, 38_012.3, 4.2e8])
def test_numbers_below_a_million_million_have_no_exponent(value: float, digits: int) -> None:
    shown = readable(value, digits)
    assert "e" not in shown
    assert float(shown.replace(",", "")) == pytest.approx(value, rel=0.5 * 10.0 ** (1 - digits))
