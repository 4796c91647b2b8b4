//! Labels of records: real numbers, or small integers, of which four times as many fit into a cache.

use super::prefetch::prefetch;

/// The labels of records that are read in any order.
#[derive(Clone, Copy, Debug)]
pub enum Labels<'a> {
    /// Real numbers.
    Reals(&'a [f64]),
    /// Small integers, such as -1 and 1 or numbers of classes. To read a row of records costs about ten lines of the cache,
    /// so that a line for a label less is felt.
    Integers(&'a [i16]),
}

impl<'a> Labels<'a> {
    /// How many there are.
    pub fn len(self) -> usize {
        match self {
            Labels::Reals(labels) => labels.len(),
            Labels::Integers(labels) => labels.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The label of a record.
    #[inline(always)]
    pub fn get(self, record: usize) -> f64 {
        match self {
            Labels::Reals(labels) => labels[record],
            Labels::Integers(labels) => labels[record].into(),
        }
    }

    /// The labels as real numbers, if they are.
    pub fn reals(self) -> Option<&'a [f64]> {
        match self {
            Labels::Reals(labels) => Some(labels),
            Labels::Integers(_) => None,
        }
    }

    /// Asks the memory for the label of a record.
    #[inline(always)]
    pub(super) fn ask(self, record: usize) {
        match self {
            Labels::Reals(labels) => prefetch(&labels[record..=record]),
            Labels::Integers(labels) => prefetch(&labels[record..=record]),
        }
    }
}

impl<'a> From<&'a [f64]> for Labels<'a> {
    fn from(labels: &'a [f64]) -> Labels<'a> {
        Labels::Reals(labels)
    }
}

impl<'a> From<&'a [i16]> for Labels<'a> {
    fn from(labels: &'a [i16]) -> Labels<'a> {
        Labels::Integers(labels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_either_kind_have_the_same_values() {
        let (reals, integers) = ([-1.0, 1.0, 1023.0], [-1, 1, 1023]);
        let (reals, integers) = (Labels::from(&reals[..]), Labels::from(&integers[..]));
        assert!((0..3).all(|record| reals.get(record) == integers.get(record)));
        assert_eq!((reals.len(), integers.len(), integers.is_empty()), (3, 3, false));
        assert!(reals.reals().is_some() && integers.reals().is_none());
    }
}
