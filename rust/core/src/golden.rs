//! The least value of a function with a single valley, by golden sections.

const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// The point in [low, high] with the least value of a function with a single valley, found with this number of
/// evaluations, and the value.
///
/// Each evaluation but the first leaves three fifths of the interval. A valley's floor is flat: forty of them leave an
/// error of the value of the order of its rounding.
///
/// ```
/// use hdp_fast_core::golden::lowest;
///
/// let (x, least) = lowest(0.0, 3.0, 40, |x| (x - 1.0).powi(2) + 2.0);
/// assert!((x - 1.0).abs() < 1e-6 && least - 2.0 < 1e-12);
/// ```
pub fn lowest(mut low: f64, mut high: f64, evaluations: usize, f: impl Fn(f64) -> f64) -> (f64, f64) {
    let (mut left, mut right) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
    let (mut at_left, mut at_right) = (f(left), f(right));
    for _ in 2..evaluations {
        if at_left <= at_right {
            (high, right, at_right) = (right, left, at_left);
            left = high - GOLDEN * (high - low);
            at_left = f(left);
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = low + GOLDEN * (high - low);
            at_right = f(right);
        }
    }
    if at_left <= at_right { (left, at_left) } else { (right, at_right) }
}

#[cfg(test)]
mod tests {
    use super::lowest;

    #[test]
    fn finds_valleys_inside_and_at_the_ends() {
        for (at, slack) in [(0.3, 1e-7), (-1.0, 2e-8), (2.0, 2e-8)] {
            let (x, least) = lowest(-1.0, 2.0, 45, |x| (x - at).abs() + 1.0);
            assert!((x - at).abs() < slack && (least - 1.0).abs() < slack, "{at}: {x}, {least}");
        }
    }

    #[test]
    fn evaluates_as_often_as_told() {
        for evaluations in [2, 3, 10] {
            let count = std::cell::Cell::new(0);
            let _ = lowest(0.0, 1.0, evaluations, |x| {
                count.set(count.get() + 1);
                x * x
            });
            assert_eq!(count.get(), evaluations);
        }
    }
}
