//! The stage of the demo: a folder, drawn tokens, a configuration text that the real loader reads, and the pieces.

use std::io::{ErrorKind, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::cli::print;
use crate::cli::stop::Stop;
use crate::config::{Config, Loaded};
use crate::ids::{Ids, SystemIds};

/// The tool that the agent calls.
pub const TOOL: &str = "oa__purchase_pay";
/// From here on a payment needs a person.
const THRESHOLD: u32 = 50_000;
/// The piece that is played, as it is shipped.
const PIECE: &str = include_str!("../../../examples/pieces/pay-invoice.yaml");

/// The folder and what is written into it.
pub struct Stage {
    folder: Folder,
    /// The token of the agent.
    pub agent: String,
    /// The token of Dana, who may decide.
    pub operator: String,
    /// The token of the auditor.
    pub auditor: String,
}

impl Stage {
    /// Makes the folder, with fresh tokens in files that only this user can read.
    pub fn set(keep: Option<&Path>) -> Result<Self, Stop> {
        let stage = Self {
            folder: Folder::make(keep)?,
            agent: draw(),
            operator: draw(),
            auditor: draw(),
        };
        for (name, token) in [
            ("agent", &stage.agent),
            ("dana", &stage.operator),
            ("auditor", &stage.auditor),
        ] {
            stage.write(&format!("{name}.token"), token)?;
        }
        stage.write("pieces/pay-invoice.yaml", PIECE)?;
        Ok(stage)
    }

    /// Writes the configuration for a model and a payment endpoint at these addresses, and loads it as `serve` would.
    pub fn load(&self, model: SocketAddr, bank: SocketAddr) -> Result<Loaded, Stop> {
        self.write("gatepost.yaml", &config(model, bank))?;
        Ok(Config::load(&self.path().join("gatepost.yaml"), &|_| None)?)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.folder.path
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Stop> {
        let path = self.path().join(name);
        let cannot =
            |error: std::io::Error| Stop::failed(format!("{} cannot be written: {error}", path.display()));
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(cannot)?;
        }
        let file = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path);
        file.and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(cannot)
    }
}

/// 32 hexadecimal digits that nobody can guess.
pub fn draw() -> String {
    let mut bytes = [0; 16];
    SystemIds.random(&mut bytes);
    hex::encode(bytes)
}

/// A folder that goes with the value, unless it is to be kept.
struct Folder {
    path: PathBuf,
    keep: bool,
}

impl Folder {
    fn make(keep: Option<&Path>) -> Result<Self, Stop> {
        let path = keep.map_or_else(
            || std::env::temp_dir().join(format!("gatepost-demo-{}", draw())),
            Path::to_owned,
        );
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| {
            let shown = print::foreign(&path.display().to_string());
            match error.kind() {
                ErrorKind::AlreadyExists => Stop::usage(format!(
                    "{shown} is there already, and nothing in it is touched: --keep takes the name of a folder that is to be made"
                )),
                ErrorKind::NotFound => Stop::usage(format!(
                    "{shown} cannot be made: the folder that it should stand in does not exist"
                )),
                _ => Stop::failed(format!("the folder {shown} cannot be made: {error}")),
            }
        })?;
        Ok(Self {
            path,
            keep: keep.is_some(),
        })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.keep {
            // A folder that stays behind under the temporary one does no harm.
            let _removed = std::fs::remove_dir_all(&self.path);
        }
    }
}

fn config(model: SocketAddr, bank: SocketAddr) -> String {
    format!(
        "\
# The configuration of `gatepost demo`.
server: {{listen: 127.0.0.1:0, key: {{file: gatepost.key}}}}
storage: {{url: 'sqlite://gatepost.db'}}
auth:
  tokens:
    - {{name: invoice-agent, secret: {{file: agent.token}}, role: agent, pieces: [pay-invoice]}}
    - {{name: dana-cli, secret: {{file: dana.token}}, role: operator, operator: dana}}
    - {{name: audit, secret: {{file: auditor.token}}, role: auditor}}
operators:
  - {{id: dana, name: Dana Kim, roles: [finance]}}
channels:
  - {{name: finance-desk, kind: local}}
policy:
  default: allow
  confirm: {{channels: [finance-desk], approvers: {{roles: [finance]}}, quorum: 1, timeout: 1h}}
  rules:
    - name: big-payments
      tools: [{TOOL}]
      when: 'args.amount >= {THRESHOLD}'
      effect: confirm
      reason: Payments of 50,000 or more need a person
agent:
  model: {{base_url: 'http://{model}/v1', model: scripted}}
  pieces: ./pieces
  tools:
    - name: {TOOL}
      description: Pay a purchase order or an invoice
      parameters:
        type: object
        required: [invoice, payee, amount, currency]
        properties:
          invoice: {{type: string}}
          payee: {{type: string}}
          amount: {{type: number}}
          currency: {{type: string}}
      http: {{method: POST, url: 'http://{bank}/pay'}}
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOMEWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9);

    #[test]
    fn the_configuration_loads_without_a_warning_and_the_folder_goes_with_the_stage() {
        let stage = Stage::set(None).expect("a stage");
        let loaded = stage.load(SOMEWHERE, SOMEWHERE).expect("a configuration");
        assert_eq!(loaded.warnings, []);
        let path = stage.path().to_owned();
        assert!(path.join("pieces/pay-invoice.yaml").exists());
        drop(stage);
        assert!(!path.exists());
    }

    #[test]
    fn a_kept_folder_must_be_new() {
        let outer = Stage::set(None).expect("a stage");
        let kept = outer.path().join("kept");
        drop(Stage::set(Some(&kept)).expect("a stage to keep"));
        assert!(kept.join("agent.token").exists());
        assert!(Stage::set(Some(&kept)).is_err());
    }
}
