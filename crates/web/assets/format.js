// Figures in words.

const units = [["years", 365.25 * 86400], ["d", 86400], ["h", 3600], ["min", 60], ["s", 1], ["ms", 1e-3], ["µs", 1e-6]];

// "12.4", "1,240": three figures that count.
export const short = (value) => {
  const size = Math.abs(value);
  return size >= 1000 ? Math.round(value).toLocaleString("en") : `${+value.toPrecision(3)}`;
};

// The unit in which a time is said; times of one chart share one.
export const unit = (seconds) => units.find(([name, size]) => seconds >= size * (name === "years" ? 3 : name === "d" ? 2 : 1)) ?? units.at(-1);
export const time = (seconds, [name, size] = unit(seconds)) => `${short(seconds / size)} ${name}`;
export const times = ([low, high], own = unit(high)) => `${short(low / own[1])}–${time(high, own)}`;

const sizes = [["", 1], [" k", 1e3], [" M", 1e6], [" B", 1e9], [" T", 1e12]];
const scaled = (value) => sizes.findLast(([, size]) => value >= size) ?? sizes[0];
// "1.2 M".
export const amount = (value, [name, size] = scaled(value)) => `${+(value / size).toPrecision(3)}${name}`;
export const money = (value, currency) => `${amount(value)} ${currency}`;
export const monies = ([low, high], currency) => `${+(low / scaled(high)[1]).toPrecision(3)}–${amount(high)} ${currency}`;
export const bytes = (value) => `${amount(value).replace(" B", " G").replace(/( [kMGT])?$/, (part) => `${part || " "}B`)}`;
export const percent = (share) => (share > 0 && share < 0.01 ? "under 1 %" : share < 1 && share > 0.99 ? "over 99 %" : `${Math.round(100 * share)} %`);

// "1 T", "300 billion", "15e12" as a number.
const words = { k: 1e3, thousand: 1e3, m: 1e6, million: 1e6, g: 1e9, b: 1e9, bn: 1e9, billion: 1e9, t: 1e12, trillion: 1e12 };
export function number(text) {
  const [, figure, word] = /^\s*([\d.,_]+(?:e[+-]?\d+)?)\s*([a-z]*)/i.exec(text) ?? [];
  const value = Number(figure?.replaceAll(/[,_]/g, "")) * (word ? (words[word.toLowerCase()] ?? NaN) : 1);
  return value > 0 ? value : null;
}
