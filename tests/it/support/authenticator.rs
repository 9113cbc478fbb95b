//! An authenticator app: the codes that a person reads off their phone (RFC 6238, six digits, 30 seconds, SHA-1).

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha1::Sha1;

/// The secret that is `totp` of the people who have one, in Base32: that of RFC 6238, appendix B.
const BYTES: &[u8] = b"12345678901234567890";

/// What the app shows at this instant, in milliseconds since 1970.
pub fn code_at(now_ms: i64) -> String {
    let step = u64::try_from(now_ms / 30_000).expect("after 1970");
    let mut mac = Hmac::<Sha1>::new_from_slice(BYTES).expect("any length is a key");
    mac.update(&step.to_be_bytes());
    let hash = mac.finalize().into_bytes();
    let offset = usize::from(hash[19] & 15);
    let four: [u8; 4] = hash[offset..offset + 4].try_into().expect("four bytes");
    format!("{:06}", (u32::from_be_bytes(four) & 0x7fff_ffff) % 1_000_000)
}
