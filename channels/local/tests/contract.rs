//! The contract of the port, as far as a channel without a platform has a part in it: the card is the row itself.

use gatepost_channel::{Channel as _, contract};
use gatepost_local::LocalChannel;

#[tokio::test]
async fn a_local_channel_keeps_its_part() {
    let channel = LocalChannel::new("inbox");
    contract::check_channel(&channel, None);
    assert!(
        channel.webhook().is_none() && channel.connection().is_none(),
        "nobody clicks from outside"
    );
    assert!(!channel.admits(None) && !channel.admits(Some("T0DEMO0001")));
    assert!(channel.check().await.healthy);
}
