//! Who answers: the daemon that serves already, or our own, one for each thing that drafts.

use tandem_client::Client;
use tandem_client::v1::{DraftMethod, PairStatus, StatusResponse};

use crate::BenchError;
use crate::daemon::PrivateDaemon;
use crate::method::{Drafts, Method, Serving};
use crate::pair::{Exit, PairChoice};
use crate::setup::{Service, Setup};

/// Who answers.
#[derive(Debug)]
pub(super) struct Fleet<'a> {
    setup: &'a Setup,
    daemons: Vec<PrivateDaemon>,
    /// Where the target drafts for itself at a layer that was measured, that layer: it is measured once.
    exit: Option<Exit>,
    /// Process of the daemon that served already.
    running: Option<u32>,
}

impl<'a> Fleet<'a> {
    pub(super) fn new(setup: &'a Setup) -> Self {
        Self {
            setup,
            daemons: Vec::new(),
            exit: None,
            running: None,
        }
    }

    /// Meets the daemon that serves already, where that is to be measured.
    pub(super) async fn attach(&mut self) -> Result<(), BenchError> {
        if let Service::Running { client, .. } = &self.setup.service {
            self.status(&client.clone()).await?;
        }
        Ok(())
    }

    /// Why this method cannot be measured; `None` where it can.
    pub(super) async fn lacks(&mut self, method: Method) -> Result<Option<String>, BenchError> {
        let Service::Private { pair, .. } = &self.setup.service else {
            return self.running_lacks(method).await;
        };
        let (usual, drafts) = (pair.usual.drafts, method.drafts(pair.usual.drafts));
        if drafts == Drafts::Own && drafts != usual {
            // Nobody has asked this pair to draft for itself yet, and not every target can.
            return match self.shared(method).await {
                Ok(_) => Ok(None),
                Err(BenchError::NotLoaded { problem, .. }) => Ok(Some(problem)),
                Err(error) => Err(error),
            };
        }
        Ok(
            (!pair.has(drafts))
                .then(|| "the pair has no draft model; --draft names one".to_owned()),
        )
    }

    async fn running_lacks(&mut self, method: Method) -> Result<Option<String>, BenchError> {
        let needed = match method {
            Method::None | Method::Default => return Ok(None),
            Method::Draft | Method::Tree => DraftMethod::Model,
            Method::Own | Method::SelfTree => DraftMethod::Self_,
            Method::Lookup => DraftMethod::Lookup,
        };
        let client = self.shared(method).await?;
        let (_, pair) = self.status(&client).await?;
        let info = pair.info.unwrap_or_default();
        let has = info.draft_methods().any(|method| method == needed);
        let what = match needed {
            DraftMethod::Model => "has no draft model",
            DraftMethod::Self_ => "does not draft for itself",
            _ => "is configured without lookup",
        };
        Ok((!has).then(|| format!("the pair `{}` of the running daemon {what}", info.name)))
    }

    /// Returns a client of the daemon that answers for this method among others.
    pub(super) async fn shared(&mut self, method: Method) -> Result<Client, BenchError> {
        let serving = match &self.setup.service {
            Service::Running { client, .. } => return Ok(client.clone()),
            Service::Private { pair, .. } => Serving {
                drafts: method.drafts(pair.usual.drafts),
                lookup: true,
            },
        };
        if let Some(daemon) = self
            .daemons
            .iter()
            .find(|daemon| daemon.serving() == serving)
        {
            return Ok(daemon.client().clone());
        }
        let daemon = self.start(serving).await?;
        let client = daemon.client().clone();
        self.daemons.push(daemon);
        Ok(client)
    }

    /// Starts a daemon of our own.
    pub(super) async fn start(&mut self, serving: Serving) -> Result<PrivateDaemon, BenchError> {
        let Service::Private {
            program,
            pair,
            settings,
        } = &self.setup.service
        else {
            return Err(BenchError::Nothing("the daemon runs already".to_owned()));
        };
        let pair = PairChoice {
            exit: self.exit.clone().unwrap_or_else(|| pair.exit.clone()),
            ..pair.clone()
        };
        let daemon = PrivateDaemon::start(program, &pair, serving, settings).await?;
        if serving.drafts == Drafts::Own && pair.exit == Exit::Chosen && self.exit.is_none() {
            let (_, status) = self.status(daemon.client()).await?;
            let info = status.info.unwrap_or_default();
            // With an adapter nothing is measured.
            let exit = match (info.draft, info.exit_layer) {
                (None, 1..) => Exit::Layer(info.exit_layer),
                _ => Exit::Chosen,
            };
            self.exit = Some(exit);
        }
        Ok(daemon)
    }

    /// Ends daemons that answer for several methods.
    pub(super) fn end(&mut self) {
        self.daemons.clear();
    }

    pub(super) fn is_private(&self) -> bool {
        matches!(self.setup.service, Service::Private { .. })
    }

    /// What the pair has as it is configured.
    pub(super) fn usual(&self) -> Serving {
        match &self.setup.service {
            Service::Private { pair, .. } => pair.usual,
            // Only daemons of our own are told what to have.
            Service::Running { .. } => Serving {
                drafts: Drafts::Nothing,
                lookup: false,
            },
        }
    }

    /// Returns the name of the pair to ask for.
    pub(super) fn pair_name(&self) -> &'a str {
        match &self.setup.service {
            Service::Running { pair, .. } => pair,
            Service::Private { .. } => "",
        }
    }

    /// Asks a daemon what it is doing, and picks the pair.
    pub(super) async fn status(
        &mut self,
        client: &Client,
    ) -> Result<(StatusResponse, PairStatus), BenchError> {
        let status = client.status().await?;
        if !self.is_private() {
            self.running = Some(status.pid);
        }
        let name = self.pair_name();
        let is_ours = |pair: &&PairStatus| {
            let info = pair.info.as_ref();
            info.is_some_and(|info| (name.is_empty() && info.is_default) || info.name == name)
        };
        match status.pairs.iter().find(is_ours).cloned() {
            Some(pair) => Ok((status, pair)),
            None => {
                let names = status.pairs.iter().filter_map(|pair| pair.info.as_ref());
                let names: Vec<String> = names.map(|info| format!("`{}`", info.name)).collect();
                Err(BenchError::NoPair {
                    name: name.to_owned(),
                    known: names.join(", "),
                })
            }
        }
    }

    /// Processes that work for us and still live.
    pub(super) fn pids(&self) -> Vec<u32> {
        let own = self.daemons.iter().map(PrivateDaemon::pid);
        own.chain(self.running).collect()
    }
}
