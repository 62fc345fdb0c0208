//! Order statistics of a handful of runs.
//!
//! Throughput on a shared machine has outliers in one direction only, so that every row and gate stands on the median
//! and shows the quartiles; minimum, mean, maximum and deviation are kept because the papers print them.

/// What a row says about its samples, in the samples' own unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The number of samples.
    pub runs: usize,
    /// The smallest sample.
    pub min: f64,
    /// A quarter of the samples lies below.
    pub q1: f64,
    /// Half of the samples lies below.
    pub median: f64,
    /// Three quarters of the samples lie below.
    pub q3: f64,
    /// The largest sample.
    pub max: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The standard deviation of the sample (divided by n - 1), zero for a single run.
    pub deviation: f64,
}

impl Summary {
    /// Summarises `samples`; `None` when there are none.
    pub fn of(samples: &[f64]) -> Option<Summary> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let count = sorted.len() as f64;
        let mean = sorted.iter().sum::<f64>() / count;
        let squares: f64 = sorted.iter().map(|sample| (sample - mean).powi(2)).sum();
        let deviation = if sorted.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 };
        Some(Summary {
            runs: sorted.len(),
            min,
            q1: quantile(&sorted, 0.25),
            median: quantile(&sorted, 0.5),
            q3: quantile(&sorted, 0.75),
            max,
            mean,
            deviation,
        })
    }
}

/// The `share` quantile of ascending samples, linear between neighbours (Hyndman and Fan's definition 7).
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let position = share * (sorted.len() - 1) as f64;
    let (below, above) = (position.floor() as usize, position.ceil() as usize);
    sorted[below] + (sorted[above] - sorted[below]) * position.fract()
}

/// The median; `None` without samples.
pub fn median(samples: &[f64]) -> Option<f64> {
    Summary::of(samples).map(|summary| summary.median)
}

/// The value below which this share of ascending samples lies; `None` without samples.
pub fn quantile_of(sorted: &[f64], share: f64) -> Option<f64> {
    (!sorted.is_empty()).then(|| quantile(sorted, share))
}

/// One value per pair of the interleaved schedule, missing where a run failed.
pub type Series = Vec<Option<f64>>;

/// The samples that are there.
pub fn present(series: &[Option<f64>]) -> Vec<f64> {
    series.iter().flatten().copied().collect()
}

/// The median of `combine(ours, theirs)` over the pairs in which both ran.
///
/// Runs are compared with the run made seconds before them, because the machine's speed drifts by more than the
/// difference that is looked for.
pub fn paired(ours: &[Option<f64>], theirs: &[Option<f64>], combine: fn(f64, f64) -> f64) -> Option<f64> {
    let both = ours.iter().zip(theirs).filter_map(|(one, other)| Some(combine((*one)?, (*other)?)));
    median(&both.filter(|value| value.is_finite()).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values from R: `quantile(c(7,1,3,10), type=7)`, `mean`, `sd`.
    #[test]
    fn quartiles_agree_with_r() {
        let summary = Summary::of(&[7.0, 1.0, 3.0, 10.0]).unwrap();
        assert_eq!((summary.min, summary.q1, summary.median, summary.q3, summary.max), (1.0, 2.5, 5.0, 7.75, 10.0));
        assert_eq!(summary.mean, 5.25);
        assert!((summary.deviation - 4.031_128_874_149_275).abs() < 1e-12);
    }

    #[test]
    fn one_run_has_no_deviation_and_none_has_no_summary() {
        assert_eq!(Summary::of(&[2.0]).unwrap().deviation, 0.0);
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn a_failed_run_takes_its_pair_out() {
        let ours = [Some(4.0), None, Some(9.0)];
        let theirs = [Some(2.0), Some(1.0), Some(3.0)];
        assert_eq!(paired(&ours, &theirs, |a, b| a / b), Some(2.5));
        assert_eq!(paired(&ours, &[None, None, None], |a, b| a / b), None);
    }
}
