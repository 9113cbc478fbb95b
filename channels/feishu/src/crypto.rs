//! The two recipes of the platform's callbacks: a plain digest over the raw bytes, and AES-256-CBC around the document.
//!
//! Knows bytes only. Source: the platform's guide to Encrypt Keys; verified by its published example.

use aes::Aes256;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cbc::Decryptor;
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockModeDecrypt as _, KeyIvInit as _};
use gatepost_channel::Secret;
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

/// The length of an AES block and of the initial vector, in bytes.
const BLOCK: usize = 16;

/// The sealed text was not sealed with our key, or was changed. Deliberately without detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotSealedByUs;

/// Opens `base64(iv || AES-256-CBC(PKCS#7(document)))`; the cipher's key is the SHA-256 of the Encrypt Key's UTF-8 bytes.
/// Everything is strict: canonical base64, whole blocks, at least one of them, every byte of the padding.
pub(crate) fn open(encrypt_key: &Secret, sealed: &str) -> Result<Vec<u8>, NotSealedByUs> {
    let bytes = STANDARD.decode(sealed).map_err(|_| NotSealedByUs)?;
    if bytes.len() < 2 * BLOCK || !bytes.len().is_multiple_of(BLOCK) {
        return Err(NotSealedByUs);
    }
    let (iv, ciphertext) = bytes.split_at(BLOCK);
    let key = Sha256::digest(encrypt_key.expose().as_bytes());
    let cipher = Decryptor::<Aes256>::new_from_slices(&key, iv).map_err(|_| NotSealedByUs)?;
    let mut buffer = ciphertext.to_vec();
    let length = cipher
        .decrypt_padded::<Pkcs7>(&mut buffer)
        .map_err(|_| NotSealedByUs)?
        .len();
    buffer.truncate(length);
    Ok(buffer)
}

/// The signature of callbacks and events: lower-case hex of SHA-256(timestamp || nonce || Encrypt Key || raw body). A plain
/// digest without separators, so whoever checks it must also pin the timestamp's form and read the body strictly.
pub(crate) fn signature(timestamp: &[u8], nonce: &[u8], encrypt_key: &Secret, body: &[u8]) -> String {
    let mut digest = Sha256::new();
    digest.update(timestamp);
    digest.update(nonce);
    digest.update(encrypt_key.expose().as_bytes());
    digest.update(body);
    hex::encode(digest.finalize())
}

/// The signature of legacy card callbacks: SHA-1 with the Verification Token. Good for recognising them, for nothing else.
pub(crate) fn legacy_signature(timestamp: &[u8], nonce: &[u8], token: &Secret, body: &[u8]) -> String {
    let mut digest = Sha1::new();
    digest.update(timestamp);
    digest.update(nonce);
    digest.update(token.expose().as_bytes());
    digest.update(body);
    hex::encode(digest.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers_open() {
        let file: serde_json::Value =
            serde_json::from_str(include_str!("../tests/vectors/decrypt_known_answers.json")).unwrap();
        let vectors = file["vectors"].as_array().unwrap();
        assert!(vectors.len() >= 6);
        for vector in vectors {
            let key = Secret::new(vector["encrypt_key"].as_str().unwrap()).unwrap();
            let opened = open(&key, vector["encrypt"].as_str().unwrap()).unwrap();
            assert_eq!(
                String::from_utf8(opened).unwrap(),
                vector["plaintext"].as_str().unwrap(),
                "{}",
                vector["name"]
            );
        }
    }

    #[test]
    fn what_is_not_whole_does_not_open() {
        let key = Secret::new("test key").unwrap();
        let good = "P37w+VZImNgPEO1RBhJ6RtKl7n6zymIbEG1pReEzghk=";
        assert!(open(&key, good).is_ok());
        let short_iv = STANDARD.encode([7_u8; 15]);
        let only_iv = STANDARD.encode([7_u8; 16]);
        let ragged = STANDARD.encode([7_u8; 40]);
        for bad in [
            "",
            "=",
            short_iv.as_str(),
            only_iv.as_str(),
            ragged.as_str(),
            good.trim_end_matches('='),
            &format!("{good}\n"),
            &good.replace('+', "-"),
        ] {
            assert_eq!(open(&key, bad), Err(NotSealedByUs), "{bad}");
        }
        assert_eq!(open(&Secret::new("other").unwrap(), good), Err(NotSealedByUs));
    }
}
