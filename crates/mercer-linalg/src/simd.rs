//! Run-time choice of the instruction set.

use std::sync::OnceLock;

/// The instruction set this process runs on, found once.
#[inline]
pub(crate) fn arch() -> pulp::Arch {
    static ARCH: OnceLock<pulp::Arch> = OnceLock::new();
    *ARCH.get_or_init(pulp::Arch::new)
}

/// Runs a loop compiled for the widest instruction set of this machine.
///
/// The closure is inlined into a function with the target features enabled, so plain loops over slices vectorise to
/// the full width although the build itself is portable.
///
/// ```
/// let mut x = [1.0f32, 2.0, 3.0];
/// mercer_linalg::simd::dispatch(|| x.iter_mut().for_each(|v| *v *= 2.0));
/// assert_eq!(x, [2.0, 4.0, 6.0]);
/// ```
#[inline(always)]
pub fn dispatch<R>(body: impl FnOnce() -> R) -> R {
    arch().dispatch(body)
}

/// The instruction sets that this process uses, in its own loops and in faer's products. Results may differ in the last
/// bits between machines where these differ.
pub fn instruction_set() -> String {
    let own = format!("{:?}", arch()).split(['(', ' ', '{']).next().unwrap_or_default().to_lowercase();
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx512f") {
        return format!("{} {own} avx512f", std::env::consts::ARCH);
    }
    format!("{} {own}", std::env::consts::ARCH)
}

/// Whether this machine has fused multiply-add. Where it does not, `mul_add` is a slow call.
#[inline]
pub fn is_fused() -> bool {
    !matches!(arch(), pulp::Arch::Scalar)
}
