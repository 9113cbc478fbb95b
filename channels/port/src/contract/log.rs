//! What the adapters write to the log while something is done on this thread.

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

#[derive(Clone, Default)]
struct Ears(Arc<Mutex<String>>);

/// Everything that crates of ours log on this thread during `act`, at any level.
pub(super) fn heard(act: impl FnOnce()) -> String {
    let ears = Ears::default();
    tracing::subscriber::with_default(ears.clone(), act);
    ears.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

impl Subscriber for Ears {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("gatepost")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut self.clone());
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, values: &Record<'_>) {
        values.record(&mut self.clone());
    }

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

impl Visit for Ears {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A string takes every write.
        let _ = writeln!(text, "{field}={value:?}");
    }
}
