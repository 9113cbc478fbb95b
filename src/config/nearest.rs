//! "Did you mean": the accepted word that is closest to the one found. It knows nothing but words.

/// The candidate within two edits (one for words under five letters), or one that the word begins or ends with.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const LONGEST: usize = 64;
    if word.chars().count() > LONGEST {
        return None;
    }
    let allowed = if word.chars().count() < 5 { 1 } else { 2 };
    candidates
        .into_iter()
        .filter(|candidate| candidate.chars().count() <= LONGEST)
        .map(|candidate| {
            (
                distance(&word.to_lowercase(), &candidate.to_lowercase()),
                candidate,
            )
        })
        .filter(|(distance, candidate)| *distance <= allowed || related(word, candidate))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// One word holds the other whole, as `signing_secret_env` holds `signing_secret`.
fn related(word: &str, candidate: &str) -> bool {
    let (short, long) = if word.len() < candidate.len() {
        (word, candidate)
    } else {
        (candidate, word)
    };
    short.len() >= 4 && (long.starts_with(short) || long.ends_with(short))
}

/// The edits (insert, remove, replace, swap neighbours) that turn one word into the other.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, to) in b.iter().enumerate() {
            let replace = above.get(j).copied().unwrap_or(usize::MAX) + usize::from(from != to);
            let remove = above.get(j + 1).copied().unwrap_or(usize::MAX).saturating_add(1);
            let insert = row.get(j).copied().unwrap_or(usize::MAX).saturating_add(1);
            let mut best = replace.min(remove).min(insert);
            if i > 0 && j > 0 && a.get(i - 1) == Some(to) && b.get(j - 1) == Some(from) {
                best = best.min(before.get(j - 1).copied().unwrap_or(usize::MAX).saturating_add(1));
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
    }
    above.last().copied().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn finds_the_word_that_was_meant() {
        let keys = ["approvers", "channels", "when", "signing_secret", "mode"];
        for (word, meant) in [
            ("approver", Some("approvers")),
            ("chanels", Some("channels")),
            ("whne", Some("when")),
            ("signing_secret_env", Some("signing_secret")),
            ("Mode", Some("mode")),
            ("verification", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, keys), meant, "{word}");
        }
    }
}
