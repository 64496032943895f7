//! Which proxy a hub is asked through, by the variables that curl and Python read.
//!
//! `ureq` reads them too, but in other ways: it takes `HTTP_PROXY` for `https` addresses, prefers `ALL_PROXY` to a scheme's own
//! variable, and takes a name in `NO_PROXY` for that host alone, not for those below it.

use ureq::Proxy;

use crate::FetchError;

/// Chooses the proxy for an address: the one of its scheme, else the one for all. A variable that is set and empty says that there
/// is none.
pub(crate) fn choose(address: &str, var: impl Fn(&str) -> Option<String>) -> Option<String> {
    // Where a program runs as a CGI script, HTTP_PROXY is a header of a request; so only the lower case counts there.
    let names: &[&str] = if address.to_ascii_lowercase().starts_with("https:") {
        &["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
    } else {
        &["http_proxy", "all_proxy", "ALL_PROXY"]
    };
    let value = names.iter().find_map(|name| var(name))?;
    Some(value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// Reads the hosts that are asked directly.
pub(crate) fn exceptions(var: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let list = var("no_proxy").or_else(|| var("NO_PROXY"));
    let list = list.unwrap_or_default();
    let entries = list.split([',', ' ']).map(str::trim);
    entries
        .filter(|entry| !entry.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Makes the proxy. Hosts below an excepted name are excepted too; a port at an exception is not looked at.
pub(crate) fn build(url: &str, exceptions: &[String]) -> Result<Proxy, FetchError> {
    let wrong = |_| FetchError::BadProxy {
        proxy: without_password(url),
    };
    let given = Proxy::new(url).map_err(wrong)?;
    let mut builder = Proxy::builder(given.protocol())
        .host(given.host())
        .port(given.port())
        .resolve_target(given.resolve_target());
    if let Some(user) = given.username() {
        builder = builder.username(user);
    }
    if let Some(password) = given.password() {
        builder = builder.password(password);
    }
    for entry in exceptions {
        if entry == "*" {
            builder = builder.no_proxy("*");
            continue;
        }
        let name = entry.trim_start_matches("*.").trim_start_matches('.');
        let name = match name.rsplit_once(':') {
            Some((name, port)) if !name.contains(':') && port.parse::<u16>().is_ok() => name,
            _ => name,
        };
        builder = builder.no_proxy(name).no_proxy(&format!(".{name}"));
    }
    builder.build().map_err(wrong)
}

/// Writes a proxy without who uses it.
pub(crate) fn without_password(url: &str) -> String {
    match (url.find("://"), url.rfind('@')) {
        (Some(scheme), Some(at)) if at > scheme => {
            format!("{}://{}", &url[..scheme], &url[at + 1..])
        }
        (None, Some(at)) => url[at + 1..].to_owned(),
        _ => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use ureq::http::Uri;

    use super::*;

    fn chosen(address: &str, vars: &[(&str, &str)]) -> Option<String> {
        choose(address, |name| {
            let found = vars.iter().find(|(key, _)| *key == name)?;
            Some(found.1.to_owned())
        })
    }

    #[test]
    fn a_scheme_has_its_own_proxy() {
        let vars = [
            ("HTTPS_PROXY", "http://s:1"),
            ("http_proxy", "http://p:2"),
            ("ALL_PROXY", "http://a:3"),
        ];
        assert_eq!(chosen("https://hub", &vars).as_deref(), Some("http://s:1"));
        assert_eq!(chosen("http://hub", &vars).as_deref(), Some("http://p:2"));
        assert_eq!(
            chosen("https://hub", &vars[1..]).as_deref(),
            Some("http://a:3")
        );
        assert_eq!(
            chosen("https://hub", &vars[1..2]),
            None,
            "another scheme's proxy"
        );
        assert_eq!(
            chosen(
                "https://hub",
                &[("https_proxy", ""), ("HTTPS_PROXY", "http://s:1")]
            ),
            None
        );
    }

    #[test]
    fn exceptions_hold_for_hosts_below_them() {
        let list = exceptions(|name| {
            (name == "NO_PROXY").then(|| "localhost, .corp.example,hub.example:8080".to_owned())
        });
        let proxy = build("http://me:secret@proxy:3128", &list).unwrap();
        let direct = |url: &'static str| proxy.is_no_proxy(&Uri::from_static(url));
        for url in [
            "http://localhost:80/",
            "https://corp.example/",
            "https://a.corp.example/x",
            "https://hub.example/",
            "https://cdn.hub.example/",
        ] {
            assert!(direct(url), "{url}");
        }
        for url in ["https://huggingface.co/", "https://nothub.example/"] {
            assert!(!direct(url), "{url}");
        }
        let all = build("proxy:3128", &["*".to_owned()]).unwrap();
        assert!(all.is_no_proxy(&Uri::from_static("https://huggingface.co/")));
    }

    #[test]
    fn a_wrong_proxy_is_named_without_its_password() {
        let error = build("gopher://me:secret@proxy", &[])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("gopher://proxy") && !error.contains("secret"),
            "{error}"
        );
    }
}
