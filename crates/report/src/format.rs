//! Numbers, times and names as people read them.

use stepcast_core::prediction::Bottleneck;
pub use stepcast_core::quantity::count;
use stepcast_core::quantity::{SamplesPerSec, Seconds};

/// A user's name, without control characters and shortened if long.
pub fn name(text: &str) -> String {
    const LONGEST: usize = 60;
    let shown = plain(&text.chars().take(LONGEST).collect::<String>());
    if text.chars().nth(LONGEST).is_some() { shown + "…" } else { shown }
}

/// A text without control characters, which a terminal would obey.
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// "42790 samples/s" as "42,790 samples/s"; four digits stay together.
pub fn grouped(quantity: String) -> String {
    let digits = quantity.chars().take_while(char::is_ascii_digit).count();
    match quantity[..digits].parse() {
        Ok(number) if digits > 4 => count(number) + &quantity[digits..],
        _ => quantity,
    }
}

/// 1,281,167 with its sign.
pub fn difference(number: i64) -> String {
    let sign = if number < 0 { "−" } else { "+" };
    format!("{sign}{}", count(number.unsigned_abs()))
}

/// A share as "4.2 %": one decimal below ten, none above.
pub fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    // What is written with one decimal must not round up to 10.0.
    match percent.abs() {
        size if size > 0.0 && size < 0.05 => "< 0.1 %".to_owned(),
        size if size < 9.95 => format!("{percent:.1} %"),
        size if size < 1e6 => format!("{percent:.0} %"),
        _ => format!("{percent:.1e} %"),
    }
}

/// A share as "94.9 %", always with one decimal.
pub fn percent_with_decimal(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

pub fn significant(value: f64) -> String {
    let digits = (2 - value.abs().log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A share and the ends of its interval, with enough decimals to distinguish the ends; no interval if three decimals are not
/// enough.
pub fn percent_between(share: f64, [low, high]: [f64; 2]) -> (String, Option<String>) {
    let written = |share: f64, decimals: usize| format!("{:.decimals$} %", 100.0 * share);
    let apart = (1..=3).find(|&decimals| written(low, decimals) != written(high, decimals));
    match apart {
        Some(decimals) => {
            let ends = format!("{} to {}", written(low, decimals), written(high, decimals));
            (written(share, decimals), Some(ends))
        }
        None => (percent_with_decimal(share), None),
    }
}

/// How often something happens on average: "0.04", "7.8", "419".
pub fn times(number: f64) -> String {
    match number {
        none if none <= 0.0 => "0".to_owned(),
        rare if rare < 0.005 => "less than 0.01".to_owned(),
        few if few < 0.95 => format!("{few:.2}"),
        some if some < 99.95 => format!("{some:.1}"),
        many => grouped(format!("{many:.0}")),
    }
}

/// A number with three significant digits: "1.93", "12.4", "318".
pub fn ratio(value: f64) -> String {
    match value.abs() {
        size if !size.is_finite() => value.to_string(),
        size if size >= 1e6 || (size < 1e-3 && size > 0.0) => format!("{value:.2e}"),
        size if size < 9.995 => format!("{value:.2}"),
        size if size < 99.95 => format!("{value:.1}"),
        _ => count_signed(value),
    }
}

fn count_signed(value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{}", count(value.abs().round() as u64))
}

/// A time in the units of a clock or a calendar: "1.234 s", "2 h 31 min", "3 d 4 h".
pub fn duration(time: Seconds) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    let seconds = time.get();
    if seconds < 120.0 || seconds.is_nan() {
        return time.human();
    }
    if seconds >= 1e9 {
        return in_years(seconds / 31_557_600.0);
    }
    let whole = |unit: u64| (seconds / unit as f64).round() as u64;
    if whole(1) < 2 * HOUR {
        let seconds = whole(1);
        return pair(seconds / MINUTE, "min", seconds % MINUTE, "s");
    }
    if whole(MINUTE) < 2 * DAY / MINUTE {
        let minutes = whole(MINUTE);
        return pair(minutes / 60, "h", minutes % 60, "min");
    }
    let hours = whole(HOUR);
    match hours / 24 {
        days if days < 100 => pair(days, "d", hours % 24, "h"),
        days => format!("{} d", count(days)),
    }
}

/// A time with three significant digits in a unit of its size, as beside an interval: "48.7 d", "7.32 h", "2.19 s".
pub fn rough_duration(time: Seconds) -> String {
    let units = [(86_400.0, "d"), (3600.0, "h"), (60.0, "min")];
    match units.iter().find(|(unit, _)| time.get() >= 2.0 * unit) {
        _ if time.get() >= 1e9 => duration(time),
        Some((unit, name)) => {
            format!("{} {name}", rough(time.get() / unit))
        }
        None => Seconds::new(three_digits(time.get())).human(),
    }
}

/// The ends of an interval of such times: "40.7–58.3 d".
pub fn interval_of_durations(ends: [Seconds; 2]) -> String {
    interval(ends.map(rough_duration))
}

/// Three significant digits: "18.7", "224,000".
pub fn rough(number: f64) -> String {
    let number = three_digits(number);
    if number < 1000.0 { significant(number) } else { count(number as u64) }
}

/// An amount with three significant digits, as beside an interval: "447,000".
pub fn rough_money(amount: f64) -> String {
    match three_digits(amount) {
        amount if (100.0..1000.0).contains(&amount) => count(amount as u64),
        amount => money(amount),
    }
}

/// Very long times, in years.
fn in_years(years: f64) -> String {
    match years {
        ..10.0 => format!("{years:.1} years"),
        ..1e6 => format!("{years:.0} years"),
        _ => "more than a million years".to_owned(),
    }
}

fn pair(large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    match small {
        0 => format!("{large} {large_unit}"),
        _ => format!("{large} {large_unit} {small} {small_unit}"),
    }
}

/// "1 worker", "3 workers".
pub fn several(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {what}{plural}", count(number))
}

/// Two decimals, or four digits from a thousand on, thousands separated; more decimals for less than a cent.
pub fn money(amount: f64) -> String {
    if !amount.is_finite() || amount >= 1e15 {
        return format!("{amount:.3e}");
    }
    if amount > 0.0 && amount < 0.01 {
        return format!("{amount:.2e}");
    }
    if amount >= 1000.0 {
        let four: f64 = format!("{amount:.3e}").parse().unwrap_or(amount);
        return count(four.round() as u64);
    }
    let cents = (amount * 100.0).round() as u64;
    format!("{}.{:02}", count(cents / 100), cents % 100)
}

pub fn limit(bottleneck: Bottleneck) -> &'static str {
    match bottleneck {
        Bottleneck::Compute => "computing",
        Bottleneck::ServerLink => "server link",
        Bottleneck::WorkerLink => "worker links",
        Bottleneck::FixedCost => "start-up, latency",
        Bottleneck::HostCopy => "copying on hosts",
        Bottleneck::Server => "server computing",
    }
}

/// Three significant digits, but all digits of the whole part.
pub fn average(value: f64) -> String {
    let decimals = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.decimals$}")
}

/// A throughput without its unit, for a column that names it.
pub fn bare_rate(rate: SamplesPerSec) -> String {
    without_unit(grouped(rate.human()))
}

/// The ends of an interval of times, with three significant digits: "3.04–3.57 s".
pub fn interval_of_times(ends: [Seconds; 2]) -> String {
    interval(ends.map(|end| Seconds::new(three_digits(end.get())).human()))
}

/// The ends of an interval of throughputs, likewise: "26.9–31.6 samples/s".
pub fn interval_of_rates(ends: [SamplesPerSec; 2]) -> String {
    interval(ends.map(|end| grouped(SamplesPerSec::new(three_digits(end.get())).human())))
}

/// The ends of an interval of throughputs without their unit, for a column that names it.
pub fn bare_interval_of_rates(ends: [SamplesPerSec; 2]) -> String {
    without_unit(interval_of_rates(ends))
}

fn without_unit(rate: String) -> String {
    rate.strip_suffix(" samples/s").map(str::to_owned).unwrap_or(rate)
}

/// A figure rounded to the precision of an interval of this width, a share of the figure: to three digits, as its ends, unless
/// the interval is narrower.
pub fn as_sure(value: f64, width: f64) -> f64 {
    if width > CLOSE { three_digits(value) } else { value }
}

/// Width of an interval, as a share, that three digits cannot show.
const CLOSE: f64 = 0.01;

fn three_digits(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

/// Both ends; a common unit is written once, after the second.
fn interval([low, high]: [String; 2]) -> String {
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => format!("{number}–{high}"),
        _ => format!("{low} – {high}"),
    }
}

/// A text whose first letter is a capital.
pub fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_281_167), "1,281,167");
        assert_eq!(grouped("42790 samples/s".to_owned()), "42,790 samples/s");
        assert_eq!(grouped("3043.5 samples/s".to_owned()), "3043.5 samples/s");
        assert_eq!(difference(-1_536_000), "−1,536,000");
        assert_eq!(percent(0.042), "4.2 %");
        assert_eq!(percent(0.0999), "10 %");
        assert_eq!(percent(0.4), "40 %");
        assert_eq!(percent(4e-5), "< 0.1 %");
        assert_eq!(ratio(1.934), "1.93");
        assert_eq!(ratio(12.36), "12.4");
        assert_eq!(ratio(1318.2), "1,318");
    }

    #[test]
    fn intervals_of_shares_tell_their_ends_apart() {
        let own = |text: &str| Some(text.to_owned());
        assert_eq!(percent_between(0.95, [0.93, 0.97]), ("95.0 %".to_owned(), own("93.0 % to 97.0 %")));
        let near = percent_between(0.99602, [0.99598, 0.99607]);
        assert_eq!(near, ("99.60 %".to_owned(), own("99.60 % to 99.61 %")));
        assert_eq!(percent_between(0.996, [0.995_999_9, 0.996]), ("99.6 %".to_owned(), None));
        assert_eq!([0.0, 0.001, 0.04, 7.77, 419.2].map(times), ["0", "less than 0.01", "0.04", "7.8", "419"]);
    }

    #[test]
    fn names_are_harmless() {
        assert_eq!(name("V100, ours"), "V100, ours");
        assert_eq!(name("\u{1b}[31mred\n"), " [31mred ");
        assert_eq!(name(&"x".repeat(1000)), "x".repeat(60) + "…");
    }

    #[test]
    fn durations_have_units_of_clocks_and_calendars() {
        let say = |seconds| duration(Seconds::new(seconds));
        assert_eq!(say(0.0123), "12.3 ms");
        assert_eq!(say(119.9), "119.9 s");
        assert_eq!(say(125.0), "2 min 5 s");
        assert_eq!(say(7199.9), "2 h");
        assert_eq!(say(9060.0), "2 h 31 min");
        assert_eq!(say(270_000.0), "3 d 3 h");
        assert_eq!(say(1e8), "1,157 d");
        assert_eq!(say(1e9), "32 years");
        assert_eq!(say(f64::INFINITY), "more than a million years");
    }

    #[test]
    fn figures_beside_intervals_have_three_digits() {
        let say = |seconds| rough_duration(Seconds::new(seconds));
        assert_eq!(
            [2.187, 125.0, 26_352.0, 4.2083e6, 1e8, 1e9].map(say),
            ["2.19 s", "2.08 min", "7.32 h", "48.7 d", "1,160 d", "32 years"]
        );
        assert_eq!(interval_of_durations([3.52e6, 5.04e6].map(Seconds::new)), "40.7–58.3 d");
        assert_eq!([2.957, 123.456, 447_231.0].map(rough_money), ["2.96", "123", "447,000"]);
    }

    #[test]
    fn money_has_two_decimals_unless_it_is_tiny() {
        assert_eq!(money(0.0), "0.00");
        assert_eq!(money(123.456), "123.46");
        assert_eq!(money(1_802_110.18), "1,802,000");
        assert_eq!(money(0.0012), "1.20e-3");
        assert_eq!(money(f64::INFINITY), "inf");
    }

    #[test]
    fn intervals_have_three_digits_and_a_common_unit_once() {
        let times = |low, high| interval_of_times([Seconds::new(low), Seconds::new(high)]);
        assert_eq!(times(3.041, 3.572), "3.04–3.57 s");
        assert_eq!(times(0.9, 1.1), "900 ms – 1.1 s");
        let rates = [SamplesPerSec::new(12.0), SamplesPerSec::new(12_340.0)];
        assert_eq!(interval_of_rates(rates), "12–12,300 samples/s");
        assert_eq!(bare_interval_of_rates(rates), "12–12,300");
        assert_eq!(bare_rate(SamplesPerSec::new(12_340.0)), "12,340");
    }
}
