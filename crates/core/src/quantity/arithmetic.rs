//! Arithmetic of quantities: a vector space over the numbers, and amount = rate × time.

/// Sums, differences, multiples and ratios of one quantity.
macro_rules! linear {
    ($name:ident) => {
        impl std::ops::Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }

        impl std::ops::AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                self.0 += other.0;
            }
        }

        impl std::ops::Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }

        impl std::ops::Mul<f64> for $name {
            type Output = Self;
            fn mul(self, factor: f64) -> Self {
                Self(self.0 * factor)
            }
        }

        impl std::ops::Div<f64> for $name {
            type Output = Self;
            fn div(self, divisor: f64) -> Self {
                Self(self.0 / divisor)
            }
        }

        impl std::ops::Div for $name {
            type Output = f64;
            fn div(self, other: Self) -> f64 {
                self.0 / other.0
            }
        }

        impl std::iter::Sum for $name {
            fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
                items.fold(Self::ZERO, |total, item| total + item)
            }
        }
    };
}

/// amount / rate = time, amount / time = rate, rate × time = amount.
macro_rules! rate {
    ($amount:ident, $rate:ident) => {
        impl std::ops::Div<$rate> for $amount {
            type Output = Seconds;
            fn div(self, rate: $rate) -> Seconds {
                Seconds(self.0 / rate.0)
            }
        }

        impl std::ops::Div<Seconds> for $amount {
            type Output = $rate;
            fn div(self, time: Seconds) -> $rate {
                $rate(self.0 / time.0)
            }
        }

        impl std::ops::Mul<Seconds> for $rate {
            type Output = $amount;
            fn mul(self, time: Seconds) -> $amount {
                $amount(self.0 * time.0)
            }
        }
    };
}

pub(super) use {linear, rate};
