//! The contract of the port, as far as a channel without a platform has a part in it: the card is the row itself.

use gatepost_channel::{Channel as _, PlatformUser, contract};
use gatepost_local::LocalChannel;

#[tokio::test]
async fn a_local_channel_keeps_its_part() {
    let channel = LocalChannel::new("inbox");
    contract::check_channel(&channel, None);
    assert!(
        channel.webhook().is_none() && channel.connection().is_none(),
        "nobody clicks from outside"
    );
    let somebody = PlatformUser {
        ids: vec!["U0AAAA1111".into()],
        tenant: None,
        from_elsewhere: false,
    };
    assert!(!channel.admits(&somebody));
    assert!(channel.check().await.healthy);
}
