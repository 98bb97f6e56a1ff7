//! Digits of pi, as many as are needed to reduce the largest decimal to an angle within one turn.
//!
//! John Machin's formula of 1706, `pi / 4 = 4 atan(1 / 5) - atan(1 / 239)`, in fixed-point
//! arithmetic: a number is a list of limbs, the integer part first; each further limb counts
//! 1/`LIMB` of the limb before it.

/// Base of one limb: nine decimal digits.
const LIMB: u64 = 1_000_000_000;

/// Additional limbs for rounding errors: every division drops less than one unit of the last limb,
/// and there are fewer than 10^5 divisions.
const GUARD: usize = 2;

/// Pi as text, `3.14159..`, with at least `digits` correct digits after the point.
pub(super) fn text(digits: usize) -> String {
    let limbs = 1 + digits.div_ceil(9) + GUARD;
    let mut sum = arctangent(5, limbs);
    scale(&mut sum, 4);
    subtract(&mut sum, &arctangent(239, limbs));
    scale(&mut sum, 4);
    let mut text = String::with_capacity(limbs * 9);
    for (at, limb) in sum.iter().take(limbs - GUARD).enumerate() {
        match at {
            0 => text.push_str(&format!("{limb}.")),
            _ => text.push_str(&format!("{limb:09}")),
        }
    }
    text
}

/// `atan(1 / of)` by its power series.
fn arctangent(of: u64, limbs: usize) -> Vec<u64> {
    let mut power = vec![0; limbs];
    if let Some(whole) = power.first_mut() {
        *whole = 1;
    }
    divide(&mut power, of);
    let mut sum = power.clone();
    let mut odd = 3;
    while power.iter().any(|limb| *limb != 0) {
        divide(&mut power, of * of);
        let mut term = power.clone();
        divide(&mut term, odd);
        if odd % 4 == 3 {
            subtract(&mut sum, &term);
        } else {
            add(&mut sum, &term);
        }
        odd += 2;
    }
    sum
}

fn divide(number: &mut [u64], by: u64) {
    let mut rest = 0;
    for limb in number {
        let value = rest * LIMB + *limb;
        *limb = value / by;
        rest = value % by;
    }
}

fn scale(number: &mut [u64], by: u64) {
    let mut carry = 0;
    for limb in number.iter_mut().rev() {
        let value = *limb * by + carry;
        *limb = value % LIMB;
        carry = value / LIMB;
    }
    if let Some(whole) = number.first_mut() {
        *whole += carry * LIMB;
    }
}

fn add(number: &mut [u64], other: &[u64]) {
    let mut carry = 0;
    for (limb, other) in number.iter_mut().zip(other).rev() {
        let value = *limb + other + carry;
        *limb = value % LIMB;
        carry = value / LIMB;
    }
}

/// Subtracts `other` from `number`, which must not be less.
fn subtract(number: &mut [u64], other: &[u64]) {
    let mut borrow = 0;
    for (limb, other) in number.iter_mut().zip(other).rev() {
        let value = *limb + LIMB - other - borrow;
        *limb = value % LIMB;
        borrow = u64::from(value < LIMB);
    }
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn the_digits_are_those_of_pi() {
        let known = "3.14159265358979323846264338327950288419716939937510582097494459230\
                     781640628620899862803482534211706798214808651";
        assert!(text(120).starts_with(known), "{}", text(120));
        // More digits do not change the digits before them; six nines start at the 762nd digit.
        let many = text(2000);
        assert!(many.starts_with(&text(900)), "{many}");
        assert_eq!(many.get(763..769), Some("999999"));
    }
}
