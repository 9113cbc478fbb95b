//! Characters that pass for others: letters of one script in a word of another, styled and enclosed letters, signs drawn like
//! a slash, a dot or a bar.
//!
//! What is found here is spelled out by [`Inert`](crate::Inert) (`\u{0430}`). Honest text of any language stays as it is: a letter
//! that looks Latin is spelled out only where it stands among Latin letters, or where nothing in the text shows that its script is
//! meant. The letters are those that common fonts draw alike (Unicode Technical Standard 39 calls them confusable); the signs
//! are those that change what a command, a path or an address says.

/// The places (bytes) of characters that must be spelled out, ascending.
pub(crate) fn places(text: &str) -> Vec<usize> {
    if text.is_ascii() {
        return Vec::new();
    }
    let meant = Scripts::meant(text);
    let mut found = Vec::new();
    for (line_at, line) in pieces(text, |c| c != '\n') {
        let chinese = line.chars().any(is_cjk);
        for (token_at, token) in pieces(line, |c| !c.is_whitespace()) {
            let in_token = Token {
                text: token,
                meant,
                latin: token.chars().any(is_latin),
            };
            let mut add = |at: usize| found.push(line_at + token_at + at);
            for (at, c) in token.char_indices() {
                if always(c) || (is_wide(c) && !in_token.wide_is_honest(at, c, chinese)) {
                    add(at);
                }
            }
            for (word_at, word) in pieces(token, is_of_word) {
                for at in in_token.strangers(word) {
                    add(word_at + at);
                }
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Runs of characters of one kind, with their places.
fn pieces(text: &str, belongs: impl Fn(char) -> bool + Copy) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        at += text[at..].find(belongs)?;
        let rest = &text[at..];
        let end = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        let found = (at, &rest[..end]);
        at += end;
        Some(found)
    })
}

/// Text between blanks.
struct Token<'a> {
    text: &'a str,
    meant: Scripts,
    latin: bool,
}

impl Token<'_> {
    /// The places in one of its words where a letter passes for one of another script.
    fn strangers(&self, word: &str) -> Vec<usize> {
        let (mut latin, mut digits, mut letters, mut alike) = (false, false, 0, 0);
        for c in word.chars() {
            latin |= is_latin(c);
            digits |= c.is_ascii_digit();
            letters += usize::from(c.is_alphabetic());
            alike += usize::from(double(c).is_some());
        }
        if alike == 0 {
            return Vec::new();
        }
        // A single Greek letter is a sign of its own: α, ν, ρ.
        let sign = |c: char| letters == 1 && script(c) == Some(Script::Greek) && c.is_lowercase();
        let strange = |c: char| match double(c) {
            None => false,
            Some(Script::Digits | Script::Roman) => latin || digits,
            Some(script) => {
                latin || (alike == letters && (self.latin || !self.meant.has(script)) && !sign(c))
            }
        };
        let places = word.char_indices().filter(|(_, c)| strange(*c));
        places.map(|(at, _)| at).collect()
    }

    /// Whether a wide form stands in Chinese, Japanese or Korean text: punctuation anywhere in such a line, the rest beside it.
    fn wide_is_honest(&self, at: usize, c: char, line_is_cjk: bool) -> bool {
        if is_wide_punctuation(c) {
            return line_is_cjk;
        }
        beside(self.text[..at].chars().rev()) || beside(self.text[at..].chars())
    }
}

/// Whether what follows the wide forms is of Chinese, Japanese or Korean. Nobody writes more wide forms than this in a row.
fn beside(text: impl Iterator<Item = char>) -> bool {
    text.take(64).find(|c| !is_wide(*c)).is_some_and(is_cjk)
}

/// The scripts whose letters can be taken for Latin ones.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Script {
    Cyrillic,
    Greek,
    Armenian,
    /// Scripts with letters like Latin capitals throughout.
    Other,
    /// Roman numerals of one character.
    Roman,
    /// Digits of other scripts.
    Digits,
}

/// Scripts that a text is certainly written in: letters of them stand in it that look like nothing Latin.
#[derive(Clone, Copy)]
struct Scripts {
    cyrillic: bool,
    greek: bool,
    armenian: bool,
}

impl Scripts {
    fn meant(text: &str) -> Self {
        let any = |wanted| {
            text.chars()
                .any(|c| script(c) == Some(wanted) && double(c).is_none())
        };
        Self {
            cyrillic: any(Script::Cyrillic),
            greek: any(Script::Greek),
            armenian: any(Script::Armenian),
        }
    }

    const fn has(self, script: Script) -> bool {
        match script {
            Script::Cyrillic => self.cyrillic,
            Script::Greek => self.greek,
            Script::Armenian => self.armenian,
            Script::Other | Script::Roman | Script::Digits => false,
        }
    }
}

fn script(c: char) -> Option<Script> {
    Some(match c as u32 {
        0x0370..=0x0373 | 0x0376..=0x037D | 0x0386..=0x03FF | 0x1F00..=0x1FFF => Script::Greek,
        0x0400..=0x0482 | 0x048A..=0x052F | 0x1C80..=0x1C8A | 0xA640..=0xA66D | 0xA680..=0xA69B => {
            Script::Cyrillic
        }
        0x0531..=0x0556 | 0x0561..=0x0587 => Script::Armenian,
        0x13A0..=0x13F5
        | 0x2C80..=0x2CEE
        | 0xA4D0..=0xA4F7
        | 0x10280..=0x102D0
        | 0x102A0..=0x1031F
        | 0x10400..=0x1044F
        | 0x10920..=0x1093F
        | 0x118A0..=0x118DF => Script::Other,
        0x2160..=0x2188 => Script::Roman,
        0x0660..=0x0669
        | 0x06F0..=0x06F9
        | 0x07C0..=0x07C9
        | 0x0966..=0x096F
        | 0x09E6..=0x09EF
        | 0x0A66..=0x0A6F
        | 0x0AE6..=0x0AEF
        | 0x0B66..=0x0B6F
        | 0x0BE6..=0x0BEF
        | 0x0C66..=0x0C6F
        | 0x0CE6..=0x0CEF
        | 0x0D66..=0x0D6F
        | 0x0E50..=0x0E59
        | 0x1040..=0x1049 => Script::Digits,
        _ => return None,
    })
}

/// The script of a letter that has a double among the Latin ones.
fn double(c: char) -> Option<Script> {
    let script = script(c)?;
    let alike = match script {
        Script::Cyrillic => {
            "АВЕЅІЈКМНОРСТУХҮԚԜаеорсухѕіјһӏԁԛԝүґѵ".contains(c) || matches!(c, 'ё' | 'Ё' | 'ї' | 'Ї')
        }
        Script::Greek => "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹϳανιορτυχϲκγ".contains(c),
        Script::Armenian => "ՍՏՕԼՀօսոհցզք".contains(c),
        Script::Other | Script::Roman | Script::Digits => true,
    };
    alike.then_some(script)
}

/// Letters and signs that pass for others wherever they stand.
fn always(c: char) -> bool {
    matches!(c as u32,
        // Letters drawn in another style, enclosed, or joined.
        0x1D400..=0x1D7FF | 0x249C..=0x24E9 | 0x1F110..=0x1F169 | 0x1F170..=0x1F189 | 0xFB00..=0xFB06
        | 0x2102 | 0x210A..=0x2113 | 0x2115 | 0x2118..=0x211D | 0x2124 | 0x2128 | 0x212A..=0x212D
        | 0x212F..=0x2134 | 0x2139 | 0x213C..=0x2149
        // Letters of phonetic alphabets and small capitals that look like plain ones.
        | 0x0251 | 0x0261 | 0x0269..=0x026A | 0x01C0 | 0x01C3 | 0x0274 | 0x0280 | 0x028F | 0x0299 | 0x029C | 0x029F
        | 0x1D00..=0x1D2B
        // Strokes through letters: what looks struck out is not.
        | 0x0334..=0x0338 | 0x20D2..=0x20D3 | 0x20D8..=0x20DA | 0x20E5..=0x20E6 | 0x20EA..=0x20EB
        // Slashes, backslashes, bars.
        | 0x2044 | 0x2215..=0x2216 | 0x2223 | 0x2571..=0x2572 | 0x2758 | 0x27CB | 0x27CD | 0x29F5 | 0x29F8..=0x29F9
        | 0xFFE8
        // Dots, colons, semicolons, commas.
        | 0x2024..=0x2025 | 0x02D0 | 0x2236 | 0xA789 | 0x0589 | 0x037E | 0x0387 | 0x055D | 0x05C3 | 0x0701..=0x0704
        | 0xFE10..=0xFE19 | 0xFE30..=0xFE4F | 0xFE50..=0xFE6B
        // Hyphens, asterisks, quotes.
        | 0x2010..=0x2012 | 0x2212 | 0x02D7 | 0x204E | 0x2217 | 0x1FEF | 0x02B9..=0x02BB | 0x02C8 | 0x02CB
        // Radicals that look like the characters they stand in.
        | 0x2E80..=0x2FD5)
}

/// Wide forms of ASCII.
fn is_wide(c: char) -> bool {
    matches!(c as u32, 0xFF01..=0xFF5E | 0xFFE0..=0xFFE6)
}

/// The wide forms that Chinese and Japanese punctuate with.
fn is_wide_punctuation(c: char) -> bool {
    matches!(
        c,
        '！' | '（' | '）' | '，' | '：' | '；' | '？' | '～' | '％' | '￥'
    )
}

/// Characters of Chinese, Japanese and Korean.
fn is_cjk(c: char) -> bool {
    matches!(c as u32,
        0x1100..=0x11FF | 0x3001..=0x303F | 0x3041..=0x318F | 0x31A0..=0x31FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF
        | 0xAC00..=0xD7A3 | 0xF900..=0xFAFF | 0xFF66..=0xFF9F | 0x20000..=0x323AF)
}

fn is_latin(c: char) -> bool {
    c.is_ascii_alphabetic()
        || matches!(c as u32, 0x00C0..=0x00D6 | 0x00D8..=0x00F6 | 0x00F8..=0x024F | 0x1E00..=0x1EFF)
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c as u32, 0x0300..=0x036F)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::Inert;

    fn shown(text: &str) -> String {
        Inert::new(text).to_string()
    }

    #[test]
    fn letters_that_pass_for_others_are_spelled_out() {
        for (text, expected) in [
            ("p\u{0430}ypal.com", "p\\u{0430}ypal.com"),
            ("\u{0440}\u{0430}\u{0443}", "\\u{0440}\\u{0430}\\u{0443}"),
            (
                "/\u{0440}\u{0430}\u{0443}/list # удалить",
                "/\\u{0440}\\u{0430}\\u{0443}/list # удалить",
            ),
            ("kubectl -n pr\u{03BF}d", "kubectl -n pr\\u{03BF}d"),
            ("\u{FF52}\u{FF4D} -rf", "\\u{FF52}\\u{FF4D} -rf"),
            ("rm \u{FF0F}etc", "rm \\u{FF0F}etc"),
            ("50\u{FF0C}000", "50\\u{FF0C}000"),
            ("\u{1D41A}dmin", "\\u{1D41A}dmin"),
            ("\u{24B6}\u{24D3}", "\\u{24B6}\\u{24D3}"),
            ("\u{FB01}le", "\\u{FB01}le"),
            ("example.com\u{2044}login", "example.com\\u{2044}login"),
            ("example\u{2024}com", "example\\u{2024}com"),
            ("evil.com\u{2215}good.com", "evil.com\\u{2215}good.com"),
            ("rm \u{2011}rf", "rm \\u{2011}rf"),
            ("a\u{0336}b", "a\\u{0336}b"),
            ("\u{13AA}dmin", "\\u{13AA}dmin"),
            ("v\u{0661}0", "v\\u{0661}0"),
            ("mode\u{217C}", "mode\\u{217C}"),
            ("\u{2F00}二", "\\u{2F00}二"),
            ("\u{212A}ey", "\\u{212A}ey"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn honest_text_stays_as_it_is() {
        for text in [
            "请审批：向 ACME（上海）支付 50,000 元，谢谢！",
            "部署到 prod，region us-east；确认？",
            "東京都港区１－２－３ ＡＢＣ株式会社",
            "支払い：山田太郎（経理）へ５０，０００円",
            "エラー 404 — 口座番号を確認してください。Tシャツ 力作",
            "결제 승인: 주식회사 서울",
            "Оплатить счёт № 5 на сумму 50 000 ₽, он сказал: «да». SQL-запрос и ТЕСТ",
            "Πληρωμή τιμολογίου 50.000 € στον Νίκο, α και ω",
            "rate α = 0.05, χ² test, 5 μm, Δx, λ-calculus, π",
            "naïve café, Łódź, ıİ, Straße, “quotes” – and — dashes… №1 ™ 5 ℃ ½ m²",
            "Phase Ⅱ, 第Ⅳ章, ①②③ 步骤",
            "✅ 🚀 👩‍💻".split('\u{200D}').next().unwrap(),
            "العربية ١٢٣ עברית ไทย ๑๒ हिन्दी १२३",
            "R&D costs `5` <b> *x* 支払い é",
        ] {
            assert_eq!(shown(text), text);
        }
    }

    #[test]
    fn a_long_text_takes_its_time_only_once() {
        // Every word is looked at once; what is quadratic here would not end.
        let text = "p\u{0430}y\u{FF0F}".repeat(200_000);
        assert!(shown(&text).starts_with("p\\u{0430}y\\u{FF0F}p"));
    }

    proptest! {
        #[test]
        fn what_always_passes_for_others_never_stands(text in "[a-zа-яΑ-Ω！-～中あ\u{2044}\u{2024}\u{1D400}-\u{1D420}\u{0300}-\u{0338} \n]{0,60}") {
            prop_assert!(!shown(&text).chars().any(super::always));
        }

        #[test]
        fn no_letter_of_another_script_stands_in_a_latin_word(before in "[a-z]{1,4}", strange in "[аеорсухԁіјѕӏοαρν]", after in "[a-z]{0,4}", around in "[ а-яぁ-ん]{0,10}") {
            let text = format!("{around} {before}{strange}{after} {around}");
            prop_assert!(!shown(&text).contains(&format!("{before}{strange}")), "{}", text);
        }

        #[test]
        fn ascii_is_never_touched(text in "[!-~]{0,80}") {
            prop_assert_eq!(shown(&text), text);
        }
    }
}
