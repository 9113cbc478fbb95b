//! The answer of a tool as text for the model: texts as they are, structured content as JSON, everything else named but not
//! shown. Bounded.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

use super::call::Called;

/// The most bytes that are kept of an answer.
const MAX_TEXT: usize = 256 * 1024;
/// The most characters of a name or address of something that is not shown.
const MAX_NAME: usize = 200;

/// What a tool answered.
pub(super) fn told(result: &CallToolResult) -> Called {
    let mut parts = Vec::new();
    let mut structured = result
        .structured_content
        .as_ref()
        .filter(|value| !value.is_null());
    for block in &result.content {
        if let ContentBlock::Text(text) = block {
            // Most servers repeat the structured content as a text.
            if structured.is_some_and(|value| is_same(value, &text.text)) {
                structured = None;
            }
        }
        parts.push(block_text(block));
    }
    if let Some(value) = structured {
        parts.push(value.to_string());
    }
    let text = bounded(&parts.join("\n"));
    if result.is_error == Some(true) {
        Called::Failed(if text.trim().is_empty() {
            "the tool failed and did not say why".to_owned()
        } else {
            text
        })
    } else {
        Called::Done(text)
    }
}

fn is_same(value: &Value, text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|read| read == *value)
}

fn block_text(block: &ContentBlock) -> String {
    let sized = |what: &str, kind: &str, bytes: usize| {
        format!("[{what} of type {}, about {bytes} bytes, not shown]", shown(kind))
    };
    // Base64 holds three bytes in four characters.
    let decoded = |data: &str| data.len() / 4 * 3;
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => sized("an image", &image.mime_type, decoded(&image.data)),
        ContentBlock::Audio(audio) => sized("a sound", &audio.mime_type, decoded(&audio.data)),
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                format!(
                    "[the resource {}, a text of {} bytes, not shown]",
                    shown(uri),
                    text.len()
                )
            }
            ResourceContents::BlobResourceContents { uri, blob, .. } => {
                format!(
                    "[the resource {}, about {} bytes, not shown]",
                    shown(uri),
                    decoded(blob)
                )
            }
            _ => "[a resource of a kind that is not shown]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => {
            format!(
                "[a link to the resource {} ({})]",
                shown(&link.uri),
                shown(&link.name)
            )
        }
        _ => "[content of a kind that is not shown]".to_owned(),
    }
}

/// A word of the server on one line, cut.
pub(super) fn shown(word: &str) -> String {
    let visible = |c: char| if is_visible(c) { c } else { '\u{FFFD}' };
    let mut text: String = word.chars().take(MAX_NAME).map(visible).collect();
    if word.chars().nth(MAX_NAME).is_some() {
        text.push('…');
    }
    text
}

/// Neither a control character nor one that reorders, hides or joins its neighbours.
pub(super) fn is_visible(c: char) -> bool {
    !c.is_control()
        && !matches!(c,
            '\u{AD}' | '\u{61C}' | '\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}'
            | '\u{E0000}'..='\u{E0FFF}')
}

/// At most [`MAX_TEXT`] bytes, saying when there was more.
pub(super) fn bounded(text: &str) -> String {
    let text = text.replace('\0', "\u{FFFD}");
    if text.len() <= MAX_TEXT {
        return text;
    }
    let end = text.floor_char_boundary(MAX_TEXT);
    let kept = text.get(..end).unwrap_or_default();
    format!("{kept}\n[cut: only the first {MAX_TEXT} bytes were kept]")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(result: Value) -> Called {
        told(&serde_json::from_value(result).unwrap())
    }

    #[test]
    fn texts_are_told_and_everything_else_is_named() {
        let answer = of(json!({"content": [
            {"type": "text", "text": "one"},
            {"type": "image", "data": "QUJD".repeat(100), "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "file:///a\u{202E}b", "text": "secret"}},
            {"type": "resource_link", "uri": "file:///c", "name": "c"},
            {"type": "text", "text": "two"},
        ]}));
        let Called::Done(text) = answer else {
            panic!("{answer:?}")
        };
        assert_eq!(
            text,
            "one\n[an image of type image/png, about 300 bytes, not shown]\n[the resource file:///a\u{FFFD}b, a text \
             of 6 bytes, not shown]\n[a link to the resource file:///c (c)]\ntwo"
        );
    }

    #[test]
    fn structured_content_is_told_once() {
        let value = json!({"a": [1, 2]});
        let twice =
            of(json!({"content": [{"type": "text", "text": "{\"a\": [1,2]}"}], "structuredContent": value}));
        assert_eq!(twice, Called::Done("{\"a\": [1,2]}".to_owned()));
        let beside = of(json!({"content": [{"type": "text", "text": "see"}], "structuredContent": value}));
        assert_eq!(beside, Called::Done("see\n{\"a\":[1,2]}".to_owned()));
    }

    #[test]
    fn a_failure_is_one_and_a_flood_is_cut() {
        assert_eq!(
            of(json!({"content": [{"type": "text", "text": "no such row"}], "isError": true})),
            Called::Failed("no such row".to_owned())
        );
        assert!(
            matches!(of(json!({"content": [], "isError": true})), Called::Failed(why) if !why.is_empty())
        );
        let Called::Done(text) = of(json!({"content": [{"type": "text", "text": "é".repeat(MAX_TEXT)}]}))
        else {
            panic!("done")
        };
        assert!(text.len() < MAX_TEXT + 100 && text.ends_with("bytes were kept]"));
    }
}
