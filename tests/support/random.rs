//! Pseudorandom numbers.

/// Numbers that are determined by the seed.
#[derive(Clone)]
pub struct Random(pub u64);

impl Random {
    /// A number below `end`, which is at most 2³¹.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    /// An index into a list of this length.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap()
    }
}
