//! Which request a person means: its id, how the id begins, or the code of its call, as in a chat.
//!
//! What several requests share names none of them: nothing is decided on a guess.

use super::answer::Answer;
use super::api::{Api, Filters};
use super::client::ClientError;
use super::print;
use super::stop::Stop;

/// The digits of an id.
const DIGITS: usize = 32;
/// The fewest of them that name anything; fewer would be a guess.
const FEWEST: usize = 6;
/// So many undecided requests are looked through, then so many of all; the newest first.
const LOOKED_AT: [(Option<&str>, usize); 2] = [(Some("pending"), 1_000), (None, 200)];

/// So many are named where several fit.
const SHOWN: usize = 10;

/// What a person typed in the place of an id.
#[derive(Debug, PartialEq, Eq)]
enum Name {
    /// An id, or what is none: the server says what becomes of it.
    AsItStands,
    /// How an id begins.
    Beginning(String),
    /// The code of a call, `K7QF-2M9X`.
    Code(String),
}

impl Name {
    fn read(text: &str) -> Self {
        let half = |half: &str| half.len() == 4 && half.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if let Some((front, back)) = text.split_once('-')
            && half(front)
            && half(back)
        {
            return Self::Code(text.to_ascii_uppercase());
        }
        let lower = text.to_ascii_lowercase();
        let digits = lower.strip_prefix("cr_").unwrap_or(&lower);
        if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) && (FEWEST..DIGITS).contains(&digits.len()) {
            return Self::Beginning(format!("cr_{digits}"));
        }
        Self::AsItStands
    }

    fn fits(&self, request: &Answer) -> bool {
        match self {
            Self::AsItStands => false,
            Self::Beginning(start) => request.value["id"]
                .as_str()
                .is_some_and(|id| id.starts_with(start)),
            Self::Code(code) => request.value["short_code"] == code.as_str(),
        }
    }
}

/// The id of the request that is meant; the text itself where it is to be taken as it stands.
///
/// # Errors
/// Several requests are meant, or the server cannot be asked.
pub async fn request(api: &Api, text: &str) -> Result<String, Stop> {
    let name = Name::read(text);
    if name == Name::AsItStands {
        return Ok(text.to_owned());
    }
    for (status, most) in LOOKED_AT {
        let filters = Filters::new().with("status", status);
        let listed = match api.list_all("/api/confirmations", &filters, most).await {
            Ok(listed) => listed,
            Err(ClientError::Refused { status: 403, .. }) => {
                return Err(Stop::failed(format!(
                    "`{}` is no whole id, and this token may not list requests: name the request by its id, `cr_…`",
                    print::foreign(text)
                )));
            }
            Err(error) => return Err(error.into()),
        };
        let found: Vec<&Answer> = listed.iter().filter(|request| name.fits(request)).collect();
        match found.as_slice() {
            [] => {}
            [one] => return Ok(one.value["id"].as_str().unwrap_or(text).to_owned()),
            several => return Err(Stop::failed(which(text, several))),
        }
    }
    Ok(text.to_owned())
}

/// The requests that a name fits, to choose from.
fn which(text: &str, several: &[&Answer]) -> String {
    let row = |one: &&Answer| {
        let [id, tool, code] =
            ["id", "tool_name", "short_code"].map(|member| print::text(&one.value, member));
        format!("\n  {id}  {tool}  {code}")
    };
    let rows: String = several.iter().take(SHOWN).map(row).collect();
    format!(
        "`{}` names {} requests; name one by its id:{rows}",
        print::foreign(text),
        several.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(id: &str, code: &str) -> Answer {
        Answer::read(
            format!(r#"{{"id":"{id}","tool_name":"pay\u001b[2J","short_code":"{code}"}}"#).as_bytes(),
        )
        .unwrap()
    }

    #[test]
    fn a_beginning_or_a_code_is_looked_up_and_everything_else_is_left_to_the_server() {
        let whole = format!("cr_{}", "a".repeat(DIGITS));
        for text in [
            &*whole,
            "",
            "cr_1",
            "cr_abcde",
            "cr_xyzxyz",
            "desk",
            "job_0198aa",
            "K7QF-2M9",
        ] {
            assert_eq!(Name::read(text), Name::AsItStands, "{text}");
        }
        for text in ["cr_0198ab", "0198AB", "CR_0198ab"] {
            assert_eq!(
                Name::read(text),
                Name::Beginning("cr_0198ab".to_owned()),
                "{text}"
            );
        }
        assert_eq!(Name::read("k7qf-2m9x"), Name::Code("K7QF-2M9X".to_owned()));
    }

    #[test]
    fn a_name_fits_what_it_says_and_nothing_else() {
        let one = request("cr_0198abcd", "K7QF-2M9X");
        assert!(Name::read("cr_0198ab").fits(&one) && Name::read("k7qf-2m9x").fits(&one));
        assert!(!Name::read("cr_0198ac").fits(&one) && !Name::read("K7QF-2M9Y").fits(&one));
        // A server that tells no codes has none that fit.
        let silent = Answer::read(br#"{"id":"cr_0198abcd"}"#).unwrap();
        assert!(!Name::read("K7QF-2M9X").fits(&silent));
    }

    #[test]
    fn what_several_share_is_asked_about() {
        let (one, two) = (request("cr_1", "K7QF-2M9X"), request("cr_2", "K7QF-2M9X"));
        let said = which("K7QF-2M9X", &[&one, &two]);
        assert!(
            said.starts_with("`K7QF-2M9X` names 2 requests")
                && said.contains("\n  cr_1  ")
                && said.contains("\n  cr_2  "),
            "{said}"
        );
        assert!(!said.contains('\u{1b}'), "{said}");
    }
}
