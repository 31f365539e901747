//! The exponent of a curve: how its cost grows with *n*.

/// The exponent of a power law, and the standard error of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exponent {
    pub value: f64,
    pub error: f64,
}

/// Fits a line through the logarithms of the points by least squares. Its slope is
/// the exponent: 0 for a constant cost, 1 for one that grows as *n* does.
///
/// Returns `None` for fewer than three points, which have no error to compute.
pub fn exponent(points: &[(f64, f64)]) -> Option<Exponent> {
    if points.len() < 3 {
        return None;
    }
    let logs: Vec<(f64, f64)> = points.iter().map(|(n, cost)| (n.ln(), cost.ln())).collect();
    let count = logs.len() as f64;
    let mean_x = logs.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = logs.iter().map(|(_, y)| y).sum::<f64>() / count;
    let square_x: f64 = logs.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let product: f64 = logs.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let value = product / square_x;
    let residual = |(x, y): &(f64, f64)| (y - mean_y - value * (x - mean_x)).powi(2);
    let residuals: f64 = logs.iter().map(residual).sum();
    let error = (residuals / (count - 2.0) / square_x).sqrt();
    Some(Exponent { value, error })
}

#[cfg(test)]
mod tests {
    use super::exponent;

    #[test]
    fn a_power_of_n_has_its_exponent_and_no_error() {
        for power in [0.0, 1.0, 2.0] {
            let cost = |n: f64| (n, 7.0 * n.powf(power));
            let fitted = exponent(&[1.0, 10.0, 300.0, 1000.0].map(cost)).unwrap();
            assert!((fitted.value - power).abs() < 1e-9, "{fitted:?}");
            assert!(fitted.error < 1e-9, "{fitted:?}");
        }
    }

    #[test]
    fn noise_shows_in_the_error() {
        let fitted = exponent(&[(1.0, 1.0), (10.0, 15.0), (100.0, 80.0)]).unwrap();
        assert!(fitted.error > 0.05, "{fitted:?}");
    }

    #[test]
    fn two_points_are_no_curve() {
        assert_eq!(exponent(&[(1.0, 1.0), (10.0, 10.0)]), None);
    }
}
