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
    let hex = |value: f64| value.round() as u8;
    let text = format!("#{:02x}{:02x}{:02x}", hex(red), hex(green), hex(blue));
    (text, luminance([red, green, blue]) < EVEN)
}

/// On this luminance black and white have the same contrast, 4.58.
const EVEN: f64 = 0.179;

/// Relative luminance of red, green and blue up to 255 (WCAG 2.2).
fn luminance(colour: [f64; 3]) -> f64 {
    let [red, green, blue] = colour.map(|value| {
        let value = value / 255.0;
        if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    });
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/// The contrast of two colours, written as "#rrggbb" (WCAG 2.2).
#[cfg(test)]
pub(crate) fn contrast(a: &str, b: &str) -> f64 {
    let of = |colour: &str| {
        let channel = |from: usize| u8::from_str_radix(&colour[from..from + 2], 16).unwrap().into();
        luminance([channel(1), channel(3), channel(5)])
    };
    (of(a).max(of(b)) + 0.05) / (of(a).min(of(b)) + 0.05)
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

    /// Level AA requires a contrast of 4.5 for text.
    #[test]
    fn text_stands_out_on_every_colour() {
        for share in (0..=1000).map(|place| f64::from(place) / 1000.0) {
            let (fill, dark) = of(share);
            let text = if dark { "#ffffff" } else { "#000000" };
            assert!(contrast(&fill, text) >= 4.5, "{share}: {fill}");
        }
        assert!((contrast("#ffffff", "#000000") - 21.0).abs() < 1e-9);
    }
}
