//! Statistics of many timings: the median, and the tenth percentile, which excludes noisy neighbours.

/// Nanoseconds per item, one entry per timed chunk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples {
    values: Vec<f64>,
}

impl Samples {
    /// Records a chunk of `items` items that took `ns` nanoseconds.
    pub(crate) fn record(&mut self, ns: f64, items: usize) {
        self.values.push(ns / items as f64);
    }

    /// The median; `None` without samples.
    pub(crate) fn median(&self) -> Option<f64> {
        self.quantile(0.5)
    }

    /// The tenth percentile.
    pub(crate) fn p10(&self) -> Option<f64> {
        self.quantile(0.1)
    }

    /// The mean over all samples. It shows what the median hides, such as the one chunk in which a filter grew.
    pub(crate) fn mean(&self) -> Option<f64> {
        (!self.values.is_empty()).then(|| self.values.iter().sum::<f64>() / self.values.len() as f64)
    }

    /// Linear interpolation between the two nearest samples.
    fn quantile(&self, share: f64) -> Option<f64> {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        let place = share * (sorted.len().checked_sub(1)?) as f64;
        let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
        Some(low + (high - low) * place.fract())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: &[f64]) -> Samples {
        Samples { values: values.to_vec() }
    }

    #[test]
    fn without_samples_there_are_no_statistics() {
        let none = Samples::default();
        assert_eq!((none.median(), none.p10(), none.mean()), (None, None, None));
    }

    #[test]
    fn medians_of_odd_even_and_single_samples() {
        assert_eq!(samples(&[7.0]).median(), Some(7.0));
        assert_eq!(samples(&[9.0, 1.0, 5.0]).median(), Some(5.0));
        assert_eq!(samples(&[4.0, 1.0, 2.0, 9.0]).median(), Some(3.0));
    }

    #[test]
    fn one_in_ten_is_below_p10() {
        let hundred: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        assert_eq!(samples(&hundred).p10(), Some(10.0));
        assert_eq!(samples(&hundred).mean(), Some(50.0));
    }

    #[test]
    fn a_chunk_is_recorded_per_item() {
        let mut chunk = Samples::default();
        chunk.record(3_000.0, 1_000);
        assert_eq!(chunk.median(), Some(3.0));
    }

    #[test]
    fn one_wild_sample_moves_the_mean_only() {
        let noisy = samples(&[2.0, 2.0, 2.0, 2.0, 902.0]);
        assert_eq!(noisy.median(), Some(2.0));
        assert_eq!(noisy.mean(), Some(182.0));
    }
}
