//! What the screen of halfspaces takes: tiles of records, and groups of halfspaces, in single precision.

/// The number of records whose scores are computed at a time.
pub const TILE: usize = 64;

/// Halfspaces that share a load of the records: with their scores the registers are full.
pub const ABREAST: usize = 6;

/// The count of a halfspace for which some score is too close to 0.
pub const UNSURE: u8 = u8::MAX;

/// Records in single precision, those with label 0 negated: a negative score is a wrong prediction.
#[derive(Clone, Copy)]
pub struct Tile<'a> {
    /// The entries by columns of [`TILE`] records.
    pub columns: &'a [f32],
    /// For each record what its biases are multiplied with, plus or minus `scale`.
    pub signs: &'a [f32; TILE],
    /// The power of two by which the records were scaled.
    pub scale: f32,
    /// At least the largest norm of a scaled record.
    pub norm: f32,
    /// The records that count, the first one in the lowest bit.
    pub valid: u64,
}

/// Halfspaces in single precision, each times a power of two; their number is a multiple of [`ABREAST`].
#[derive(Clone, Copy)]
pub struct Rough<'a> {
    /// The number of features, at least 1.
    pub features: usize,
    /// The weights of [`ABREAST`] halfspaces for the first feature, then for the next one, and so on; then those of the
    /// next halfspaces.
    pub weights: &'a [f32],
    /// The biases.
    pub biases: &'a [f32],
    /// The margin of a score for every unit of the tile's norm, and for every unit of its scale.
    pub margins: &'a [[f32; 2]],
}

impl Rough<'_> {
    /// How far a score of this halfspace may be from the exact one.
    #[inline(always)]
    pub(super) fn margin(&self, i: usize, tile: Tile<'_>) -> f32 {
        let [norm, scale] = self.margins[i];
        norm * tile.norm + scale * tile.scale
    }
}
