//! A scale of colours: lightness falls evenly from end to end, so that it reads in grey print and to the colour-blind.

/// From light to dark: sand, green, blue, night.
const STOPS: [[f64; 3]; 5] = [
    [253.0, 240.0, 196.0],
    [169.0, 212.0, 160.0],
    [72.0, 163.0, 169.0],
    [38.0, 95.0, 143.0],
    [28.0, 31.0, 84.0],
];

/// The colour of a share between 0 and 1, and whether text on it has to be light.
pub(crate) fn of(share: f64) -> (String, bool) {
    let place = share.clamp(0.0, 1.0) * (STOPS.len() - 1) as f64;
    let low = (place as usize).min(STOPS.len() - 2);
    let part = place - low as f64;
    let mix = |channel: usize| STOPS[low][channel] * (1.0 - part) + STOPS[low + 1][channel] * part;
    let [red, green, blue] = [mix(0), mix(1), mix(2)];
    let luma = 0.299 * red + 0.587 * green + 0.114 * blue;
    let hex = |value: f64| value.round() as u8;
    (format!("#{:02x}{:02x}{:02x}", hex(red), hex(green), hex(blue)), luma < 128.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_darkens_steadily() {
        let luma = |stop: &[f64; 3]| 0.299 * stop[0] + 0.587 * stop[1] + 0.114 * stop[2];
        assert!(STOPS.windows(2).all(|pair| luma(&pair[0]) > luma(&pair[1]) + 20.0));
        assert_eq!(of(0.0), ("#fdf0c4".to_owned(), false));
        assert_eq!(of(1.0), ("#1c1f54".to_owned(), true));
        assert_eq!(of(f64::NAN).0.len(), 7);
    }
}
