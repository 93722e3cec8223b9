//! Random signs, eight per byte, and loops that multiply by them.

use mercer_data::random::ChaCha8Rng;
use mercer_linalg::Scalar;
use rand::Rng;

/// The eight signs of every byte, so that a loop multiplies by a row of this table instead of extracting bits.
#[derive(Debug)]
pub(super) struct SignTable<T>(Vec<[T; 8]>);

impl<T: Scalar> SignTable<T> {
    pub(super) fn new() -> Self {
        let sign = |byte: usize, bit: usize| if byte >> bit & 1 == 0 { T::one() } else { -T::one() };
        Self((0..256).map(|byte| std::array::from_fn(|bit| sign(byte, bit))).collect())
    }

    /// `to = signs ∘ from`; there are as many signs as numbers, or more.
    #[inline(always)]
    pub(super) fn copy(&self, signs: &[u8], from: &[T], to: &mut [T]) {
        self.each(signs, from, to, |to, from, sign| *to = from * sign);
    }

    /// `to += signs ∘ from`.
    #[inline(always)]
    pub(super) fn add(&self, signs: &[u8], from: &[T], to: &mut [T]) {
        self.each(signs, from, to, |to, from, sign| *to += from * sign);
    }

    /// `to[k] += Σ_j signs[j, k] · from[j, k mod period]`, with rows of `from` that are `stride` apart. Sums stay in registers.
    #[inline(always)]
    pub(super) fn add_rows(&self, signs: &[u8], from: &[T], stride: usize, period: usize, to: &mut [T]) {
        const LANES: usize = 32;
        let table: &[[T; 8]; 256] = self.0.as_slice().try_into().expect("256 bytes");
        let row_bytes = bytes_for(to.len());
        let rows = || signs.chunks_exact(row_bytes).zip(from.chunks_exact(stride));
        if !period.is_multiple_of(LANES) {
            for (signs, from) in rows() {
                for (to, signs) in to.chunks_mut(period).zip(signs.chunks(bytes_for(period))) {
                    self.add(signs, &from[..to.len()], to);
                }
            }
            return;
        }
        let (whole, rest) = to.as_chunks_mut::<LANES>();
        let at = LANES * whole.len();
        for (index, to) in whole.iter_mut().enumerate() {
            let (byte, column) = (index * LANES / 8, index * LANES % period);
            let mut sums = [T::zero(); LANES];
            for (signs, from) in rows() {
                let from: &[T; LANES] = from[column..column + LANES].try_into().expect("as many");
                let signs: &[u8; LANES / 8] = signs[byte..byte + LANES / 8].try_into().expect("as many");
                for lane in 0..LANES {
                    sums[lane] += from[lane] * table[signs[lane / 8] as usize][lane % 8];
                }
            }
            to.iter_mut().zip(sums).for_each(|(to, sum)| *to += sum);
        }
        for (signs, from) in rows() {
            self.add(&signs[at / 8..], &from[at % period..][..rest.len()], rest);
        }
    }

    /// `x ← signs ∘ x`.
    #[inline(always)]
    pub(super) fn flip(&self, signs: &[u8], x: &mut [T]) {
        let table: &[[T; 8]; 256] = self.0.as_slice().try_into().expect("256 bytes");
        let (whole, rest) = x.as_chunks_mut::<8>();
        let last = signs.get(whole.len());
        for (x, &byte) in whole.iter_mut().zip(signs) {
            let row = &table[byte as usize];
            (0..8).for_each(|i| x[i] *= row[i]);
        }
        if let Some(&byte) = last {
            rest.iter_mut().zip(&table[byte as usize]).for_each(|(x, &sign)| *x *= sign);
        }
    }

    /// `to = signs`.
    #[inline(always)]
    pub(super) fn expand(&self, signs: &[u8], to: &mut [T]) {
        let (whole, rest) = to.as_chunks_mut::<8>();
        let last = signs.get(whole.len());
        for (to, &byte) in whole.iter_mut().zip(signs) {
            *to = self.0[byte as usize];
        }
        if let Some(&byte) = last {
            rest.iter_mut().zip(&self.0[byte as usize]).for_each(|(to, &sign)| *to = sign);
        }
    }

    #[inline(always)]
    fn each(&self, signs: &[u8], from: &[T], to: &mut [T], body: impl Fn(&mut T, T, T)) {
        let table: &[[T; 8]; 256] = self.0.as_slice().try_into().expect("256 bytes");
        let whole = from.len() / 8;
        let (from, from_rest) = from.as_chunks::<8>();
        let (to, to_rest) = to[..8 * whole + from_rest.len()].as_chunks_mut::<8>();
        for ((to, from), &byte) in to.iter_mut().zip(from).zip(signs) {
            let row = &table[byte as usize];
            (0..8).for_each(|i| body(&mut to[i], from[i], row[i]));
        }
        if let Some(&byte) = signs.get(whole) {
            let row = &table[byte as usize];
            (0..to_rest.len()).for_each(|i| body(&mut to_rest[i], from_rest[i], row[i]));
        }
    }
}

/// Bytes that hold this many signs.
pub(super) fn bytes_for(signs: usize) -> usize {
    signs.div_ceil(8)
}

/// Fair coins.
pub(super) fn coins(stream: &mut ChaCha8Rng, bytes: usize) -> Vec<u8> {
    let mut coins = vec![0; bytes];
    stream.fill_bytes(&mut coins);
    coins
}
