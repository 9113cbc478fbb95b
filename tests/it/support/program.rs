//! The real `gatepost` binary: started with a configuration in a folder of its own, killed, started again on its data.

use std::fs::File;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tokio::process::{Child, Command};

use super::temp_dir::TempDir;
use super::{description, loopback};

/// How long a start may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Where one program lives: its folder and its address, the same over restarts.
#[derive(Clone, Debug)]
pub struct Place {
    dir: Arc<TempDir>,
    port: u16,
}

impl Place {
    /// An empty folder and a port that was free a moment ago.
    pub fn new() -> Self {
        let probe = TcpListener::bind(("127.0.0.1", 0)).expect("a free loopback port");
        let port = probe.local_addr().expect("a bound address").port();
        Self {
            dir: Arc::new(TempDir::new()),
            port,
        }
    }

    /// A file of the folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file of the folder, for example a piece; folders in `name` are made.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.file(name);
        std::fs::create_dir_all(path.parent().expect("a file in the folder")).expect("a folder");
        std::fs::write(&path, text).expect("a written file");
        path
    }

    /// `127.0.0.1:PORT`, for `server.listen`.
    pub fn listen(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The address of a path of the running program.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.listen())
    }

    /// The API with a token.
    pub fn api(&self, token: &str) -> Api {
        Api {
            base: self.url(""),
            token: token.to_owned(),
            client: loopback::client(),
        }
    }

    /// The address at which the platforms reach a channel.
    pub fn callback_url(&self, channel: &str) -> String {
        self.url(&format!("/api/channels/{channel}/callback"))
    }
}

/// Why a program did not become ready.
#[derive(Debug)]
pub struct NotReady {
    /// How it ended; none when it ran but never answered `/readyz` with 200.
    pub status: Option<ExitStatus>,
    /// All that it printed.
    pub output: String,
}

/// A running `gatepost serve`; it is killed with the value.
pub struct Program {
    /// Where it lives.
    pub place: Place,
    environment: Vec<(String, String)>,
    child: Child,
}

impl Program {
    /// Like [`Program::start`], for starts that should fail.
    pub async fn try_start(
        place: Place,
        config: &str,
        environment: &[(&str, &str)],
    ) -> Result<Self, NotReady> {
        place.write("gatepost.yaml", config);
        let environment: Vec<_> = environment
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let child = spawn(&place, &environment);
        let mut program = Self {
            place,
            environment,
            child,
        };
        program.wait_until_ready().await?;
        Ok(program)
    }

    /// All that was printed since the first start.
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.place.file("output.txt")).unwrap_or_default())
            .into_owned()
    }

    async fn wait_until_ready(&mut self) -> Result<(), NotReady> {
        let client = loopback::client();
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            let ready = client.get(self.place.url("/readyz")).send().await;
            if ready.is_ok_and(|answer| answer.status().is_success()) {
                return Ok(());
            }
            // Polling is all there is: readiness is an HTTP answer. The pause ends early with the program.
            if let Ok(status) = tokio::time::timeout(Duration::from_millis(20), self.child.wait()).await {
                return Err(NotReady {
                    status: status.ok(),
                    output: self.output(),
                });
            }
        }
        Err(NotReady {
            status: None,
            output: self.output(),
        })
    }
}

impl Program {
    /// Writes `gatepost.yaml` and waits until the program is ready.
    ///
    /// # Panics
    /// With all that the program printed, when it does not become ready.
    pub async fn start(place: Place, config: &str, environment: &[(&str, &str)]) -> Self {
        match Self::try_start(place, config, environment).await {
            Ok(program) => program,
            Err(NotReady { status, output }) => {
                panic!("gatepost is not ready ({status:?}). It printed:\n{output}")
            }
        }
    }

    /// Ends it as a crash of the machine would.
    pub async fn kill_9(&mut self) {
        self.child.kill().await.expect("a killed program");
    }

    /// Asks it to end and waits until it has.
    pub async fn terminate(&mut self) -> ExitStatus {
        let pid = self
            .child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .expect("a running program");
        kill(Pid::from_raw(pid), Signal::SIGTERM).expect("a signal that arrives");
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        ended.expect("an end after SIGTERM").expect("an exit status")
    }

    /// Starts it again on the same data, after [`Program::kill_9`] or [`Program::terminate`].
    pub async fn restart(&mut self) {
        self.child = spawn(&self.place, &self.environment);
        if let Err(NotReady { status, output }) = self.wait_until_ready().await {
            panic!("gatepost is not ready again ({status:?}). It printed:\n{output}");
        }
    }

    /// The API with a token.
    pub fn api(&self, token: &str) -> Api {
        self.place.api(token)
    }
}

fn spawn(place: &Place, environment: &[(String, String)]) -> Child {
    let log = File::options()
        .create(true)
        .append(true)
        .open(place.file("output.txt"))
        .expect("an output file");
    let errors = log.try_clone().expect("a second handle");
    Command::new(env!("CARGO_BIN_EXE_gatepost"))
        .args(["serve", "--config", "gatepost.yaml"])
        .current_dir(place.dir.path())
        .env_clear()
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(errors)
        .kill_on_drop(true)
        .spawn()
        .expect("a started program")
}

/// The HTTP API with one token.
#[derive(Clone, Debug)]
pub struct Api {
    base: String,
    token: String,
    client: reqwest::Client,
}

/// An answer, held against the description of the API.
fn described(asked: (&str, &str), (status, answer): (u16, Value)) -> (u16, Value) {
    static DOCUMENT: LazyLock<Value> =
        LazyLock::new(|| serde_json::from_str(gatepost::http::OPENAPI).expect("the description is JSON"));
    if answer.is_null() {
        // No JSON.
        return (status, answer);
    }
    let faults = description::faults(&DOCUMENT, asked, status, &answer);
    assert_eq!(faults, [""; 0], "the description and the answer differ: {answer}");
    (status, answer)
}

impl Api {
    /// `GET path`: status and JSON body (null when it is none).
    pub async fn get(&self, path: &str) -> (u16, Value) {
        let asked = self.client.get(format!("{}{path}", self.base));
        described(("GET", path), self.send(asked).await)
    }

    /// `POST path` with a JSON body.
    pub async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let asked = self.client.post(format!("{}{path}", self.base)).json(body);
        described(("POST", path), self.send(asked).await)
    }

    /// `POST path` to a server that may be ending; nothing when it gave no answer.
    pub async fn try_post(&self, path: &str, body: &Value) -> Option<(u16, Value)> {
        let request = self.client.post(format!("{}{path}", self.base)).json(body);
        let answer = request.bearer_auth(&self.token).send().await.ok()?;
        let status = answer.status().as_u16();
        Some((status, answer.json().await.ok()?))
    }

    /// `GET path`: status and the exact text.
    pub async fn get_text(&self, path: &str) -> (u16, String) {
        self.send_text(self.client.get(format!("{}{path}", self.base)))
            .await
    }

    /// `POST path` with exactly this JSON text: status and the exact text of the answer.
    pub async fn post_text(&self, path: &str, body: impl Into<reqwest::Body>) -> (u16, String) {
        let request = self.client.post(format!("{}{path}", self.base));
        let request = request.header("content-type", "application/json").body(body);
        self.send_text(request).await
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> (u16, Value) {
        let (status, body) = self.send_text(request).await;
        (status, serde_json::from_str(&body).unwrap_or_default())
    }

    async fn send_text(&self, request: reqwest::RequestBuilder) -> (u16, String) {
        let answer = request
            .bearer_auth(&self.token)
            .send()
            .await
            .expect("an answer of gatepost");
        let status = answer.status().as_u16();
        (status, answer.text().await.expect("a whole answer in UTF-8"))
    }
}
