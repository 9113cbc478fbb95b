//! Opening and changing modals: `views.open` within the life of the press, `views.update` while the modal is open.

use async_trait::async_trait;
use gatepost_channel::{Dialog, DialogRef, Dialogs, Failure, FullView, Opener};
use serde::Serialize;
use serde_json::Value;

use crate::channel::SlackChannel;
use crate::client::{Answer, Arguments};
use crate::error::{self, CallError};
use crate::modal::{self, Modal};

/// The arguments of `views.open`.
#[derive(Serialize)]
struct Opening<'a> {
    trigger_id: &'a str,
    view: Modal,
}

/// The arguments of `views.update`.
#[derive(Serialize)]
struct Changing<'a> {
    view_id: &'a str,
    view: Modal,
}

#[async_trait]
impl Dialogs for SlackChannel {
    fn holds(&self, view: &FullView) -> bool {
        modal::holds(view)
    }

    async fn open(&self, opener: &Opener, dialog: &Dialog) -> Result<DialogRef, Failure> {
        let opening = Opening {
            trigger_id: opener.as_str(),
            view: modal::lay_out(dialog),
        };
        let answer = self.view("views.open", &opening).await?;
        let id = answer.body.get("view").and_then(|view| view.get("id"));
        id.and_then(Value::as_str)
            .filter(|id| error::is_short_word(id))
            .map(|id| DialogRef(id.to_owned()))
            .ok_or_else(|| Failure::Setup {
                why: "answer_without_view".to_owned(),
            })
    }

    async fn change(&self, at: &DialogRef, dialog: &Dialog) -> Result<(), Failure> {
        let changing = Changing {
            view_id: &at.0,
            view: modal::lay_out(dialog),
        };
        self.view("views.update", &changing).await.map(drop)
    }
}

impl SlackChannel {
    async fn view(&self, method: &str, arguments: &impl Serialize) -> Result<Answer, Failure> {
        let arguments = Arguments::json(arguments).map_err(CallError::of_edit)?;
        self.app
            .api
            .call(method, arguments)
            .await
            .map_err(CallError::of_edit)
    }
}
