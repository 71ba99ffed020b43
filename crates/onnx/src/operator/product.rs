//! Matrix products: two operations for each element of the output and each summed place.

use super::{InferenceError, Inferred, OperatorCall, Rule, broadcast, overflow, product_of, scaled, wrong};
use crate::tensor::{Size, elements, spelled};
use std::collections::BTreeMap;
use stepcast_core::model::CostKind;

pub(super) fn rule(op: &str) -> Option<Rule> {
    Some(match op {
        "MatMul" | "MatMulInteger" => |call| matmul(call, 0, 1),
        "QLinearMatMul" => |call| matmul(call, 0, 3),
        "Gemm" => gemm,
        "Einsum" => einsum,
        "Det" => determinant,
        _ => return None,
    })
}

fn matmul(call: &OperatorCall<'_>, first: usize, second: usize) -> Result<Inferred, InferenceError> {
    let (a, b) = (call.shape(first)?, call.shape(second)?);
    let misfit = || InferenceError::Wrong(format!("{} and {} cannot be multiplied", spelled(a), spelled(b)));
    let (rows, inner) = match a {
        [.., rows, inner] => (Some(*rows), *inner),
        [inner] => (None, *inner),
        [] => return Err(misfit()),
    };
    let (summed, columns) = match b {
        [.., summed, columns] => (*summed, Some(*columns)),
        [summed] => (*summed, None),
        [] => return Err(misfit()),
    };
    if inner != summed {
        return Err(misfit());
    }
    let mut shape = broadcast(&a[..a.len().saturating_sub(2)], &b[..b.len().saturating_sub(2)])?;
    shape.extend(rows.into_iter().chain(columns));
    multiplied(shape, inner)
}

/// A product with this output, each element a sum of `inner` products.
fn multiplied(shape: Vec<Size>, inner: Size) -> Result<Inferred, InferenceError> {
    let amount = product_of(&shape)?.times(inner).ok_or_else(overflow)?;
    Ok(Inferred::free(shape)?.with(CostKind::MultiplyAdd, scaled(amount, 2)?))
}

fn gemm(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let (&[a, b], &[c, d]) = (call.shape(0)?, call.shape(1)?) else {
        return wrong("it multiplies matrices of two dimensions");
    };
    let (rows, inner) = if call.int("transA", 0) != 0 { (b, a) } else { (a, b) };
    let (summed, columns) = if call.int("transB", 0) != 0 { (d, c) } else { (c, d) };
    if inner != summed {
        return wrong(format!("{inner} columns meet {summed} rows"));
    }
    let made = multiplied(vec![rows, columns], inner)?;
    if !call.has(2) || call.tensor(2)?.origin == crate::tensor::Origin::Static {
        return Ok(made);
    }
    let amount = product_of(&[rows, columns])?;
    Ok(made.with(CostKind::Bias, amount))
}

/// One operation for each combination of indices and operand after the first, and one more if some index is summed.
fn einsum(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let equation = call.text("equation").unwrap_or_default().replace(' ', "");
    let (left, right) = match equation.split_once("->") {
        Some((left, right)) => (left.to_owned(), Some(right.to_owned())),
        None => (equation, None),
    };
    let terms: Vec<&str> = left.split(',').collect();
    if left.contains('.') || terms.len() != call.inputs.len() {
        return Err(InferenceError::Unknown("its equation is of a kind that is not followed".to_owned()));
    }
    let mut sizes: BTreeMap<char, (Size, usize)> = BTreeMap::new();
    for (index, term) in terms.iter().enumerate() {
        let dims = call.shape(index)?;
        if term.chars().count() != dims.len() {
            return wrong(format!("\"{term}\" does not name the dimensions of {}", spelled(dims)));
        }
        for (letter, &dim) in term.chars().zip(dims) {
            let entry = sizes.entry(letter).or_insert((dim, 0));
            entry.1 += 1;
            match entry.0 {
                size if size == Size::ONE => entry.0 = dim,
                size if size == dim || dim == Size::ONE => {}
                size => return wrong(format!("{letter} is {size} and {dim}")),
            }
        }
    }
    // Without an arrow the output has the letters that come once, in alphabetical order.
    let once = || sizes.iter().filter(|(_, (_, times))| *times == 1).map(|(letter, _)| *letter).collect();
    let output: String = right.unwrap_or_else(once);
    let shape = output.chars().map(|letter| sizes.get(&letter).map(|(size, _)| *size)).collect::<Option<_>>();
    let shape: Vec<Size> =
        shape.ok_or_else(|| InferenceError::Wrong("its output index is in no input".to_owned()))?;
    let all = elements(&sizes.values().map(|(size, _)| *size).collect::<Vec<_>>()).ok_or_else(overflow)?;
    let summed = sizes.keys().any(|letter| !output.contains(*letter));
    let products = terms.len() as u64 - 1;
    let kind = if summed && products > 0 { CostKind::MultiplyAdd } else { CostKind::Elementwise };
    Ok(Inferred::free(shape)?.with(kind, scaled(all, products + u64::from(summed))?))
}

/// By elimination: two thirds of the side's cube (Golub and Van Loan, section 3.2).
fn determinant(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let dims = call.shape(0)?;
    let [outer @ .., side, _] = dims else { return wrong("it reads square matrices") };
    let cube =
        product_of(&[*side, *side, *side, Size::fixed(2)])?.over(Size::fixed(3)).ok_or_else(overflow)?;
    let amount = product_of(outer)?.times(cube).ok_or_else(overflow)?;
    Ok(Inferred::free(outer.to_vec())?.with(CostKind::MultiplyAdd, amount))
}
