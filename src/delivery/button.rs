//! The button token of a card: unguessable without the server's key, so that a reader of the database can press nothing.

use gatepost_channel::{ButtonToken, Seen};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

use crate::ids::{ChannelName, DeliveryId};
use crate::storage::TokenHash;

/// The server's key, which lies outside the database.
#[derive(Clone)]
pub struct ServerKey([u8; 32]);

impl std::fmt::Debug for ServerKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ServerKey(…)")
    }
}

impl ServerKey {
    /// Takes 32 bytes that came from a cryptographic source.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes, for keyed codes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// HMAC-SHA-256 of the parts, each with its length, under a purpose of its own.
    pub fn mac(&self, purpose: &str, parts: &[&[u8]]) -> [u8; 32] {
        // A key of 32 bytes is always taken; a hash of nothing would not be a MAC, so the impossible case hashes the key.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else {
            return Sha256::digest(self.0).into();
        };
        for part in std::iter::once(purpose.as_bytes()).chain(parts.iter().copied()) {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }

    /// The token of a card, from its id and its random nonce.
    pub fn button(&self, delivery: &DeliveryId, nonce: &[u8; 16]) -> ButtonToken {
        let mac = self.mac("button", &[delivery.as_str().as_bytes(), nonce]);
        let mut token = [0_u8; 16];
        token.copy_from_slice(&mac[..16]);
        ButtonToken::new(token)
    }

    /// What proves that this person, by the platform's id, could see everything of this revision of the request behind `token`, a
    /// button of this channel. It is made when that is so, and made again to be compared.
    pub fn seen(&self, token: &ButtonToken, revision: u32, user: &str, channel: &ChannelName) -> Seen {
        let revision = revision.to_be_bytes();
        let parts = [
            &token.as_bytes()[..],
            &revision,
            user.as_bytes(),
            channel.as_str().as_bytes(),
        ];
        let mut seen = [0_u8; 16];
        seen.copy_from_slice(&self.mac("seen", &parts)[..16]);
        Seen::new(seen)
    }
}

/// What the store keeps of a token.
pub fn token_hash(token: &ButtonToken) -> TokenHash {
    Sha256::digest(token.as_bytes()).into()
}
