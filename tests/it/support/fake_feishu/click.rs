//! Card callbacks as the platform sends them: encrypted with the Encrypt Key, signed over the outer bytes.

use std::time::Duration;

use aes::Aes256;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cbc::Encryptor;
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockModeEncrypt, KeyIvInit};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::super::platform_request::{Answered, PlatformRequest};
use super::super::temp_dir::random_hex;
use super::world::{CardToken, Message, buttons, callback_value, walk};
use super::{APP, ENCRYPT_KEY, FakeFeishu, TENANT, VERIFICATION_TOKEN, card};

/// What the clicker saw.
#[derive(Clone, Debug)]
pub struct Clicked {
    /// The answer of the callback address.
    pub answered: Answered,
    /// The toast, or the code that the client shows when the answer is unusable.
    pub toast: Result<Option<Toast>, u32>,
    /// Whether the answer carried a new card, which is then the message's current one.
    pub card_replaced: bool,
}

/// The short notice of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toast {
    /// `info`, `success`, `error` or `warning`.
    pub kind: String,
    /// The text.
    pub content: String,
}

/// How the document travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carriage {
    /// Encrypted and signed.
    Sealed,
    /// Encrypted, but without the signature headers.
    Unsigned,
    /// In clear, with a signature.
    Clear,
}

/// A field of a form.
#[derive(Clone, Debug)]
struct Field {
    name: String,
    required: bool,
    /// What stands in it before anybody types.
    given: String,
    /// The most characters that it takes.
    most: u64,
}

/// A callback about to be sealed. Its methods are what an attacker or an accident could change.
#[derive(Clone, Debug)]
#[must_use]
pub struct Callback {
    document: Value,
    encrypt_key: String,
    signing_key: String,
    timestamp: i64,
    nonce: String,
    carriage: Carriage,
}

/// A click on a card: a [`Callback`] that knows its message.
#[must_use]
pub struct Click<'a> {
    feishu: &'a FakeFeishu,
    message_id: String,
    card_token: String,
    button: Value,
    /// The fields of the form around the button.
    fields: Vec<Field>,
    callback: Callback,
}

impl FakeFeishu {
    /// A press on the current card's button whose value says `decision`, by the person with this `open_id`.
    ///
    /// # Panics
    /// When the message is gone or has no such button any more: no client could press it.
    pub fn click(&self, message: &Message, decision: &str, open_id: &str) -> Click<'_> {
        let mut messages = self.messages(&message.chat_id).into_iter();
        let now = messages
            .find(|other| other.id == message.id)
            .expect("the message still stands");
        self.press(&now, now.current(), 0, decision, None, open_id)
    }

    /// A press on the current card's `nth` button (from 0) whose value says `decision`, on a card that has several.
    ///
    /// # Panics
    /// When the message is gone or has no such button.
    pub fn click_nth(&self, message: &Message, nth: usize, decision: &str, open_id: &str) -> Click<'_> {
        let mut messages = self.messages(&message.chat_id).into_iter();
        let now = messages
            .find(|other| other.id == message.id)
            .expect("the message still stands");
        self.press(&now, now.current(), nth, decision, None, open_id)
    }

    /// A press on the current card's button that approves for this scope too.
    ///
    /// # Panics
    /// When the message is gone or has no such button.
    pub fn click_grant(&self, message: &Message, scope: &str, open_id: &str) -> Click<'_> {
        let mut messages = self.messages(&message.chat_id).into_iter();
        let now = messages
            .find(|other| other.id == message.id)
            .expect("the message still stands");
        self.press(&now, now.current(), 0, "approve", Some(scope), open_id)
    }

    /// A press on the button as it stood in the given revision (a client that has not caught up).
    pub fn click_revision(
        &self,
        message: &Message,
        revision: usize,
        decision: &str,
        open_id: &str,
    ) -> Click<'_> {
        self.press(message, &message.history[revision], 0, decision, None, open_id)
    }

    fn press(
        &self,
        message: &Message,
        card: &Value,
        nth: usize,
        decision: &str,
        scope: Option<&str>,
        open_id: &str,
    ) -> Click<'_> {
        self.press_button(message, card, (decision, nth), open_id, |value| {
            value["decision"] == decision && value["grant"].as_str() == scope && value["edited"].is_null()
        })
    }

    /// A press on the button that approves what stands in the field for changed arguments.
    ///
    /// # Panics
    /// When the message is gone or has no such button.
    pub fn click_edited(&self, message: &Message, open_id: &str) -> Click<'_> {
        let mut messages = self.messages(&message.chat_id).into_iter();
        let now = messages
            .find(|other| other.id == message.id)
            .expect("the message still stands");
        self.press_button(&now, now.current(), ("edited", 0), open_id, |value| {
            value["edited"] == true
        })
    }

    /// A press on the current card's button that shows everything.
    ///
    /// # Panics
    /// When the message is gone or has no such button.
    pub fn click_show(&self, message: &Message, open_id: &str) -> Click<'_> {
        let mut messages = self.messages(&message.chat_id).into_iter();
        let now = messages
            .find(|other| other.id == message.id)
            .expect("the message still stands");
        self.press_button(&now, now.current(), ("everything", 0), open_id, |value| {
            value["show"] == "everything"
        })
    }

    fn press_button(
        &self,
        message: &Message,
        card: &Value,
        (what, nth): (&str, usize),
        open_id: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Click<'_> {
        let candidates = buttons(card).into_iter();
        let mut fitting = candidates.filter(|button| wanted(&callback_value(button)));
        let button = fitting.nth(nth);
        let Some(button) = button else {
            panic!("no button says {what}: {card}")
        };
        let fields = fields_around(card, &button);
        let now_ms = self.clock().now_ms();
        let person = self.world(|world| world.people.get(open_id).cloned());
        let person = person.unwrap_or_else(|| super::Person::new(open_id, ""));
        let card_token = self.world(|world| {
            let token = world.id("c-");
            let (message_id, issued_ms) = (message.id.clone(), now_ms);
            world.card_tokens.insert(
                token.clone(),
                CardToken {
                    message_id,
                    issued_ms,
                    uses: 0,
                    answered: false,
                },
            );
            token
        });
        let mut operator =
            json!({"tenant_key": TENANT, "open_id": person.open_id, "union_id": person.union_id});
        if let Some(id) = person.user_id {
            operator["user_id"] = json!(id);
        }
        let mut action =
            json!({"tag": "button", "value": callback_value(&button), "timezone": "Asia/Shanghai"});
        if let Some(name) = button["name"].as_str() {
            action["name"] = json!(name);
            let untouched = fields
                .iter()
                .map(|field| (field.name.clone(), json!(field.given)));
            action["form_value"] = Value::Object(untouched.collect());
        }
        let document = json!({
            "schema": "2.0",
            "header": {
                "event_id": random_hex(), "token": VERIFICATION_TOKEN, "create_time": (now_ms * 1000).to_string(),
                "event_type": "card.action.trigger", "tenant_key": TENANT, "app_id": APP,
            },
            "event": {
                "operator": operator, "token": card_token, "action": action, "host": "im_message",
                "context": {"open_message_id": message.id, "open_chat_id": message.chat_id},
            },
        });
        let callback = self.callback(document);
        Click {
            feishu: self,
            message_id: message.id.clone(),
            card_token,
            button,
            fields,
            callback,
        }
    }

    /// The handshake of the developer console: encrypted, without signature headers.
    pub fn url_verification(&self, challenge: &str) -> Callback {
        let document =
            json!({"challenge": challenge, "token": VERIFICATION_TOKEN, "type": "url_verification"});
        Callback {
            carriage: Carriage::Unsigned,
            ..self.callback(document)
        }
    }

    pub(super) fn callback(&self, document: Value) -> Callback {
        Callback {
            document,
            encrypt_key: ENCRYPT_KEY.to_owned(),
            signing_key: ENCRYPT_KEY.to_owned(),
            timestamp: self.clock().now_seconds(),
            nonce: random_hex(),
            carriage: Carriage::Sealed,
        }
    }
}

impl Click<'_> {
    /// What the person typed into an input of the form around the button.
    pub fn with_input(mut self, name: &str, text: &str) -> Self {
        assert!(
            self.button["form_action_type"] == "submit",
            "the button submits no form: {}",
            self.button
        );
        let field = self.fields.iter().find(|field| field.name == name);
        let field = field.unwrap_or_else(|| panic!("no field {name} in the form: {:?}", self.fields));
        assert!(
            text.encode_utf16().count() as u64 <= field.most,
            "{name} takes no more"
        );
        self.callback.document["event"]["action"]["form_value"][name] = json!(text);
        self
    }

    /// Encrypted as it should be, but signed with another key.
    pub fn forged(mut self) -> Self {
        "not-the-encrypt-key".clone_into(&mut self.callback.signing_key);
        self
    }

    /// Encrypted and signed with a key that is not the app's.
    pub fn with_foreign_key(mut self) -> Self {
        "not-the-encrypt-key".clone_into(&mut self.callback.encrypt_key);
        self.forged()
    }

    /// Signed this long ago.
    pub fn aged(mut self, by: Duration) -> Self {
        self.callback.timestamp -= i64::try_from(by.as_secs()).expect("a short way");
        self
    }

    /// Encrypted, but without signature headers.
    pub fn unsigned(mut self) -> Self {
        self.callback.carriage = Carriage::Unsigned;
        self
    }

    /// In clear although the app has an Encrypt Key; signed all the same.
    pub fn in_clear(mut self) -> Self {
        self.callback.carriage = Carriage::Clear;
        self
    }

    /// Sent for another app.
    pub fn for_app(self, app: &str) -> Self {
        self.edit(|document| document["header"]["app_id"] = json!(app))
    }

    /// From another tenant.
    pub fn by_tenant(self, tenant: &str) -> Self {
        self.edit(|document| {
            document["header"]["tenant_key"] = json!(tenant);
            document["event"]["operator"]["tenant_key"] = json!(tenant);
        })
    }

    /// Claims to come from another group.
    pub fn in_chat(self, chat: &str) -> Self {
        self.edit(|document| document["event"]["context"]["open_chat_id"] = json!(chat))
    }

    /// Claims to come from another message.
    pub fn on_message(self, message_id: &str) -> Self {
        self.edit(|document| document["event"]["context"]["open_message_id"] = json!(message_id))
    }

    /// Carries another value than the button's.
    pub fn with_value(self, value: &Value) -> Self {
        self.edit(|document| document["event"]["action"]["value"] = value.clone())
    }

    /// Any other change of the document before it is sealed.
    pub fn edit(mut self, change: impl FnOnce(&mut Value)) -> Self {
        change(&mut self.callback.document);
        self
    }

    /// What the callback says, as a frame of the long connection carries it: in clear.
    pub fn into_document(self) -> Value {
        self.callback.document
    }

    /// The exact request; keep it to replay it.
    pub fn request(&self) -> PlatformRequest {
        self.callback.request()
    }

    /// The card token that the callback carries, for the delayed update.
    pub fn card_token(&self) -> &str {
        &self.card_token
    }

    /// Whether the client sends the press: it does not while a required field of the form is empty.
    pub fn is_sent(&self) -> bool {
        let typed = &self.callback.document["event"]["action"]["form_value"];
        let mut required = self.fields.iter().filter(|field| field.required);
        required.all(|field| typed[&field.name] != "")
    }

    /// Seals and posts it, and shows the answer to the clicker as the client does: toast, and the card if there is one. A
    /// request that no client would send is posted as well.
    pub async fn post(&self, url: &str) -> Clicked {
        let id = self.message_id.clone();
        self.feishu.world(|world| world.in_click.insert(id.clone()));
        let answered = self.request().post(url).await;
        self.feishu.world(|world| {
            world.in_click.remove(&id);
            if let Some(token) = world.card_tokens.get_mut(&self.card_token) {
                token.answered = true;
            }
        });
        let (toast, card) = match read(&answered) {
            Ok((toast, card)) => (Ok(toast), card),
            Err(code) => (Err(code), None),
        };
        let Some(card) = card else {
            return Clicked {
                answered,
                toast,
                card_replaced: false,
            };
        };
        let valid = self.feishu.world(|world| {
            let fits = card::check(&card, world).is_ok();
            if fits && let Some(message) = world.message_mut(&id) {
                message.history.push(card);
            }
            fits
        });
        let toast = if valid { toast } else { Err(200_673) };
        Clicked {
            answered,
            toast,
            card_replaced: valid,
        }
    }
}

/// The fields of the form in which the button stands; none when it stands in no form.
fn fields_around(card: &Value, button: &Value) -> Vec<Field> {
    let elements = card["body"]["elements"].as_array().cloned().unwrap_or_default();
    let mut forms = elements.into_iter().filter(|element| element["tag"] == "form");
    let Some(form) = forms.find(|form| buttons(form).contains(button)) else {
        return Vec::new();
    };
    let mut fields = Vec::new();
    walk(&form, &mut |element| {
        if element.get("tag") == Some(&json!("input")) {
            let text = |name: &str| {
                element
                    .get(name)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            };
            fields.push(Field {
                name: text("name"),
                required: element.get("required") == Some(&json!(true)),
                given: text("default_value"),
                most: element.get("max_length").and_then(Value::as_u64).unwrap_or(1),
            });
        }
    });
    fields
}

/// Reads an answer as the client does.
fn read(answered: &Answered) -> Result<(Option<Toast>, Option<Value>), u32> {
    if !answered.in_time() {
        return Err(200_341);
    }
    if answered.status != 200 {
        return Err(200_671);
    }
    let answer: Value = serde_json::from_str(&answered.body).map_err(|_| 200_672_u32)?;
    let fields = answer.as_object().ok_or(200_672_u32)?;
    if fields.keys().any(|name| name != "toast" && name != "card") {
        return Err(200_672);
    }
    let toast = match fields.get("toast") {
        None => None,
        Some(toast) => {
            let kind = toast["type"].as_str().unwrap_or("info").to_owned();
            let content = toast["content"].as_str().ok_or(200_672_u32)?.to_owned();
            if !["info", "success", "error", "warning"].contains(&kind.as_str()) {
                return Err(200_672);
            }
            Some(Toast { kind, content })
        }
    };
    let card = match fields.get("card") {
        None => None,
        Some(card) if card["type"] == "raw" && card["data"]["schema"] == "2.0" => Some(card["data"].clone()),
        Some(card) if card["type"] == "raw" && card["data"].is_object() => return Err(200_830),
        Some(_) => return Err(200_673),
    };
    Ok((toast, card))
}

impl Callback {
    /// What the callback says, as a frame of the long connection carries it: in clear.
    pub fn into_document(self) -> Value {
        self.document
    }

    /// Any change of the document before it is sealed.
    pub fn edit(mut self, change: impl FnOnce(&mut Value)) -> Self {
        change(&mut self.document);
        self
    }

    /// Encrypted, but without signature headers.
    pub fn unsigned(mut self) -> Self {
        self.carriage = Carriage::Unsigned;
        self
    }

    /// The exact request; keep it to replay it.
    pub fn request(&self) -> PlatformRequest {
        let plain = self.document.to_string();
        let body = match self.carriage {
            Carriage::Clear => plain,
            Carriage::Sealed | Carriage::Unsigned => {
                json!({"encrypt": encrypt(&self.encrypt_key, &plain)}).to_string()
            }
        };
        let mut headers = vec![(
            "Content-Type".to_owned(),
            "application/json; charset=utf-8".to_owned(),
        )];
        if self.carriage != Carriage::Unsigned {
            let mut digest = Sha256::new();
            for part in [&self.timestamp.to_string(), &self.nonce, &self.signing_key, &body] {
                digest.update(part.as_bytes());
            }
            let signed = [
                ("X-Lark-Request-Timestamp", self.timestamp.to_string()),
                ("X-Lark-Request-Nonce", self.nonce.clone()),
                ("X-Lark-Signature", hex::encode(digest.finalize())),
                ("X-Request-Id", self.nonce.clone()),
            ];
            headers.extend(signed.map(|(name, value)| (name.to_owned(), value)));
        }
        PlatformRequest {
            headers,
            body: body.into_bytes(),
        }
    }

    /// Seals and posts it.
    pub async fn post(&self, url: &str) -> Answered {
        self.request().post(url).await
    }
}

/// Base64 of the IV and the AES-256-CBC ciphertext; the key is the SHA-256 of the Encrypt Key.
fn encrypt(encrypt_key: &str, plain: &str) -> String {
    let key = Sha256::digest(encrypt_key.as_bytes());
    let iv = hex::decode(random_hex()).expect("32 hex digits");
    let cipher = Encryptor::<Aes256>::new_from_slices(&key, &iv).expect("a key of 32 and an IV of 16 bytes");
    let sealed = cipher.encrypt_padded_vec::<Pkcs7>(plain.as_bytes());
    STANDARD.encode([iv, sealed].concat())
}
