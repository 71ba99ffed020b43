//! Arithmetic on contents: exporters compute shapes with ordinary operators.

use crate::size::Size;
use crate::tensor::{MOST_CONTENT, Number};

/// The content of an element-wise operator's output; none where it is not known.
pub(super) fn content(op: &str, inputs: &[Option<&[Number]>]) -> Option<Vec<Number>> {
    let inputs: Vec<&[Number]> = inputs.iter().copied().collect::<Option<_>>()?;
    let length = inputs.iter().map(|input| input.len()).max().filter(|length| *length <= MOST_CONTENT)?;
    if inputs.iter().any(|input| input.len() != length && input.len() != 1) {
        return None;
    }
    let at = |input: &[Number], place: usize| input.get(if input.len() == 1 { 0 } else { place }).copied();
    (0..length)
        .map(|place| {
            let operands: Vec<Number> = inputs.iter().map(|input| at(input, place)).collect::<Option<_>>()?;
            apply(op, &operands)
        })
        .collect()
}

fn apply(op: &str, operands: &[Number]) -> Option<Number> {
    use Number::{Real, Whole};
    let truth = |value: bool| Whole(Size::fixed(i64::from(value)));
    let reals = || operands.iter().map(|number| number.real()).collect::<Option<Vec<f64>>>();
    Some(match (op, operands) {
        ("Identity", [a]) => *a,
        ("Where", [condition, yes, no]) => {
            if condition.real()? != 0.0 {
                *yes
            } else {
                *no
            }
        }
        ("Add", [Whole(a), Whole(b)]) => Whole(a.plus(*b)?),
        ("Sub", [Whole(a), Whole(b)]) => Whole(a.plus(b.negated()?)?),
        ("Mul", [Whole(a), Whole(b)]) => Whole(a.times(*b)?),
        ("Div", [Whole(a), Whole(b)]) => Whole(a.over(*b)?),
        ("Equal", [Whole(a), Whole(b)]) => truth(a == b),
        ("Neg", [Whole(a)]) => Whole(a.negated()?),
        ("Min" | "Max" | "Abs" | "Floor" | "Ceil" | "Round", [Whole(a)]) if op != "Abs" => Whole(*a),
        ("Mod", [Whole(a), Whole(b)]) => {
            Whole(Size::fixed(a.number()?.checked_rem_euclid(b.number().filter(|b| *b > 0)?)?))
        }
        ("Min" | "Max", [Whole(a), Whole(b)]) => {
            let (a, b) = (a.number()?, b.number()?);
            Whole(Size::fixed(if op == "Min" { a.min(b) } else { a.max(b) }))
        }
        ("Not", [a]) => truth(a.real()? == 0.0),
        ("And", [a, b]) => truth(a.real()? != 0.0 && b.real()? != 0.0),
        ("Or", [a, b]) => truth(a.real()? != 0.0 || b.real()? != 0.0),
        ("Greater", [a, b]) => truth(a.real()? > b.real()?),
        ("GreaterOrEqual", [a, b]) => truth(a.real()? >= b.real()?),
        ("Less", [a, b]) => truth(a.real()? < b.real()?),
        ("LessOrEqual", [a, b]) => truth(a.real()? <= b.real()?),
        _ => Real(match (op, &reals()?[..]) {
            ("Add", [a, b]) => a + b,
            ("Sub", [a, b]) => a - b,
            ("Mul", [a, b]) => a * b,
            ("Div", [a, b]) => a / b,
            ("Pow", [a, b]) => a.powf(*b),
            ("Min", [a, b]) => a.min(*b),
            ("Max", [a, b]) => a.max(*b),
            ("Neg", [a]) => -a,
            ("Abs", [a]) => a.abs(),
            ("Floor", [a]) => a.floor(),
            ("Ceil", [a]) => a.ceil(),
            ("Round", [a]) => a.round(),
            ("Sqrt", [a]) => a.sqrt(),
            ("Reciprocal", [a]) => 1.0 / a,
            _ => return None,
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_computed_with_the_batch_left_open() {
        let whole = |value| Number::Whole(Size::fixed(value));
        let batch = Number::Whole(Size::BATCH);
        let heads = content("Mul", &[Some(&[batch]), Some(&[whole(12)])]).unwrap();
        assert_eq!(content("Div", &[Some(&heads), Some(&[whole(12)])]), Some(vec![batch]));
        assert_eq!(content("Equal", &[Some(&[batch, whole(-1)]), Some(&[whole(-1)])]).unwrap()[1], whole(1));
        assert_eq!(content("Mod", &[Some(&[whole(2)]), Some(&[whole(3)])]), Some(vec![whole(2)]));
        assert_eq!(content("Add", &[Some(&[batch]), Some(&[whole(1)])]), None);
        assert_eq!(content("Div", &[Some(&[whole(1)]), Some(&[whole(0)])]), None);
        assert_eq!(content("Mul", &[Some(&[whole(1)]), None]), None);
    }
}
