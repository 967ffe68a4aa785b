//! The API over real HTTP on a real Postgres.

use std::time::Duration;

use berth_api::auth::{AUDIENCE, DEV_ISSUER, ServiceKey, TokenRequest, mint};
use berth_api::{ApiConfig, Server};
use berth_postgres::Postgres;
use berth_store::Db;
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};

/// A service with its database; both end with it.
struct TestService {
    client: Client,
    url: String,
    key: ServiceKey,
    db: Db,
    _server: Server,
    _postgres: Postgres,
    _dir: tempfile::TempDir,
}

impl TestService {
    async fn start() -> TestService {
        let dir = tempfile::tempdir().unwrap();
        // Another user owns the database's folder within.
        std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let postgres = Postgres::start(&dir.path().join("postgres"), 0).unwrap();
        let db = Db::connect(&postgres.url(), 20).await.unwrap();
        db.migrate().await.unwrap();
        let key = ServiceKey::generate().unwrap();
        let config = ApiConfig {
            listen: "127.0.0.1:0".parse().unwrap(),
            logs: format!("file://{}", dir.path().join("logs").display()),
            issuers: Vec::new(),
            dev_key: Some(key.clone()),
        };
        let server = berth_api::start(db.clone(), config).await.unwrap();
        let url = format!("http://{}", server.address);
        let service = TestService { client: Client::new(), url, key, db, _server: server, _postgres: postgres, _dir: dir };
        for tenant in ["acme", "globex"] {
            let (status, body) = service.call(Method::POST, "/v1/tenants", &service.admin(), Some(json!({ "name": tenant }))).await;
            assert_eq!(status, StatusCode::CREATED, "{body}");
        }
        service
    }

    fn request(&self, subject: &str, tenant: Option<&str>, role: &str) -> TokenRequest {
        TokenRequest {
            issuer: DEV_ISSUER.to_owned(),
            audience: AUDIENCE.to_owned(),
            subject: subject.to_owned(),
            tenant: tenant.map(str::to_owned),
            roles: vec![role.to_owned()],
            scope: None,
            valid_seconds: 600,
        }
    }

    fn admin(&self) -> String {
        mint(&self.key, &self.request("root", None, "platform_admin")).unwrap()
    }

    fn user(&self, subject: &str, tenant: &str) -> String {
        mint(&self.key, &self.request(subject, Some(tenant), "user")).unwrap()
    }

    async fn call(&self, method: Method, path: &str, token: &str, body: Option<Value>) -> (StatusCode, Value) {
        let mut request = self.client.request(method, format!("{}{path}", self.url)).bearer_auth(token).timeout(Duration::from_secs(20));
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await.unwrap();
        let status = response.status();
        let text = response.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }
}

fn echo() -> Value {
    json!({ "command": ["echo", "hello"], "resources": { "tasks": 1 } })
}

#[tokio::test]
async fn a_job_can_be_submitted_read_listed_held_and_cancelled() {
    let service = TestService::start().await;
    let ann = service.user("ann", "acme");
    let (status, job) = service.call(Method::POST, "/v1/jobs", &ann, Some(echo())).await;
    assert_eq!(status, StatusCode::CREATED, "{job}");
    let id = job["job_id"].as_u64().unwrap();

    let (status, read) = service.call(Method::GET, &format!("/v1/jobs/{id}"), &ann, None).await;
    assert_eq!(status, StatusCode::OK, "{read}");
    assert_eq!(
        (read["state"].as_str(), read["account"].as_str(), read["partition"].as_str()),
        (Some("pending"), Some("default"), Some("main"))
    );
    assert_eq!(read["spec"]["command"], json!(["echo", "hello"]));

    for (verb, hold) in [("hold", json!("user")), ("release", Value::Null)] {
        let (status, held) = service.call(Method::POST, &format!("/v1/jobs/{id}:{verb}"), &ann, None).await;
        assert_eq!((status, &held["hold"]), (StatusCode::OK, &hold), "{held}");
    }
    let (_, list) = service.call(Method::GET, "/v1/jobs?state=pending&name=ec*", &ann, None).await;
    assert_eq!(list["items"].as_array().map(Vec::len), Some(1), "{list}");

    let (status, ended) = service.call(Method::POST, &format!("/v1/jobs/{id}:cancel"), &ann, Some(json!({}))).await;
    assert_eq!((status, ended["state"].as_str()), (StatusCode::OK, Some("cancelled")), "{ended}");
    let (_, events) = service.call(Method::GET, &format!("/v1/jobs/{id}/events"), &ann, None).await;
    let kinds: Vec<&str> = events["items"].as_array().unwrap().iter().filter_map(|e| e["kind"].as_str()).collect();
    assert_eq!(kinds, ["job.submitted", "job.held", "job.released", "job.ended"]);
}

#[tokio::test]
async fn a_script_is_a_job_and_its_faults_name_their_line() {
    let service = TestService::start().await;
    let ann = service.user("ann", "acme");
    let post = |script: &'static str| {
        let request =
            service.client.post(format!("{}/v1/jobs", service.url)).bearer_auth(&ann).header("content-type", "text/x-shellscript");
        async move { request.body(script).send().await.unwrap() }
    };
    let good = post("#!/bin/bash\n#SBATCH --job-name=train --nodes=2\n#SBATCH --time=10\nsrun hostname\n").await;
    assert_eq!(good.status(), StatusCode::CREATED);
    let id = good.json::<Value>().await.unwrap()["job_id"].as_u64().unwrap();
    let (_, job) = service.call(Method::GET, &format!("/v1/jobs/{id}"), &ann, None).await;
    assert_eq!((job["name"].as_str(), job["time_limit_seconds"].as_u64()), (Some("train"), Some(600)));

    let bad = post("#!/bin/bash\n#SBATCH --gpus=foo\ntrue\n").await;
    assert_eq!(bad.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let problem = bad.json::<Value>().await.unwrap();
    assert!(problem["detail"].as_str().unwrap().starts_with("line 2"), "{problem}");
    assert!(problem["help"].is_string() && problem["code"].is_string() && problem["field"].is_string(), "{problem}");
}

#[tokio::test]
async fn a_repeated_request_with_the_same_key_makes_one_job() {
    let service = TestService::start().await;
    let ann = service.user("ann", "acme");
    let post = |body: Value| {
        let request = service.client.post(format!("{}/v1/jobs", service.url)).bearer_auth(&ann).header("idempotency-key", "k1").json(&body);
        async move {
            let response = request.send().await.unwrap();
            (response.status(), response.json::<Value>().await.unwrap())
        }
    };
    let (first, second) = tokio::join!(post(echo()), post(echo()));
    assert_eq!((first.0, second.0), (StatusCode::CREATED, StatusCode::CREATED), "{first:?} {second:?}");
    assert_eq!(first.1["job_id"], second.1["job_id"]);
    let (status, problem) = post(json!({ "command": ["true"] })).await;
    assert_eq!((status, problem["code"].as_str()), (StatusCode::UNPROCESSABLE_ENTITY, Some("idempotency_key_reused")));
}

#[tokio::test]
async fn another_tenants_jobs_are_not_there() {
    let service = TestService::start().await;
    let (ann, bob) = (service.user("ann", "acme"), service.user("bob", "globex"));
    let (_, job) = service.call(Method::POST, "/v1/jobs", &ann, Some(echo())).await;
    let id = job["job_id"].as_u64().unwrap();
    for path in ["", "/attempts", "/events", "/tasks", "/steps", "/logs", "/logs/follow", "/explain"] {
        let (status, body) = service.call(Method::GET, &format!("/v1/jobs/{id}{path}"), &bob, None).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}: {body}");
    }
    for verb in ["cancel", "hold", "release", "requeue"] {
        let (status, body) = service.call(Method::POST, &format!("/v1/jobs/{id}:{verb}"), &bob, Some(json!({}))).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{verb}: {body}");
    }
    let (_, list) = service.call(Method::GET, "/v1/jobs", &bob, None).await;
    assert_eq!(list["items"], json!([]));
    let (status, _) = service.call(Method::GET, "/v1/jobs?tenant=acme", &bob, None).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (status, _) = service.call(Method::GET, "/v1/tenants/acme", &bob, None).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn forged_expired_and_misdirected_tokens_are_refused() {
    use base64::Engine as _;
    let b64 = |v: &Value| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(v.to_string());
    let service = TestService::start().await;
    let claims = json!({ "iss": DEV_ISSUER, "aud": AUDIENCE, "sub": "ann", "tenant": "acme", "roles": ["user"], "exp": 4_000_000_000u64 });
    let unsigned = format!("{}.{}.", b64(&json!({ "alg": "none", "typ": "JWT" })), b64(&claims));
    let jwk = service.key.jwk();
    let public = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(jwk["x"].as_str().unwrap()).unwrap();
    let mut header = jsonwebtoken::Header::new(jsonwebtoken::Algorithm::HS256);
    header.kid = jwk["kid"].as_str().map(str::to_owned);
    let confused = jsonwebtoken::encode(&header, &claims, &jsonwebtoken::EncodingKey::from_secret(&public).unwrap()).unwrap();
    let other_audience =
        mint(&service.key, &TokenRequest { audience: "other".to_owned(), ..service.request("ann", Some("acme"), "user") }).unwrap();
    let strange_key = mint(&ServiceKey::generate().unwrap(), &service.request("ann", Some("acme"), "user")).unwrap();
    let good = service.user("ann", "acme");
    // Within the signature, and another character for certain: the last one holds two bits alone and is `A` one time in four.
    let at = good.len() - 20;
    let other = if good.as_bytes()[at] == b'A' { 'B' } else { 'A' };
    let tampered = format!("{}{other}{}", &good[..at], &good[at + 1..]);
    for (name, token) in [
        ("alg none", unsigned),
        ("key confusion", confused),
        ("audience", other_audience),
        ("unknown key", strange_key),
        ("signature", tampered),
        ("nonsense", "x".to_owned()),
    ] {
        let (status, body) = service.call(Method::GET, "/v1/whoami", &token, None).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{name}: {body}");
    }
    let (status, _) = service.call(Method::GET, "/v1/whoami", &good, None).await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn a_stale_etag_is_refused_and_the_feed_tells_of_submissions() {
    let service = TestService::start().await;
    let ann = service.user("ann", "acme");
    let (events, mut position) = service.db.snapshot().await.unwrap();
    assert!(!events.is_empty(), "policy, partition and QOS of a new cluster");
    let (_, job) = service.call(Method::POST, "/v1/jobs", &ann, Some(echo())).await;
    let id = job["job_id"].as_u64().unwrap();
    let patch = |version: &'static str, nice: i32| {
        let request = service
            .client
            .patch(format!("{}/v1/jobs/{id}", service.url))
            .bearer_auth(&ann)
            .header("if-match", version)
            .json(&json!({ "nice": nice }));
        async move { request.send().await.unwrap().status() }
    };
    assert_eq!(patch("\"1\"", 5).await, StatusCode::OK);
    assert_eq!(patch("\"1\"", 6).await, StatusCode::PRECONDITION_FAILED);
    let mut seen = Vec::new();
    for _ in 0..50 {
        seen.extend(service.db.read_feed(&mut position).await.unwrap().events);
        if seen.iter().any(|e| matches!(e, berth_model::event::Event::Job(j) if j.id.0 == id && j.nice == 5)) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the feed told only {seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_says_how_the_queue_is_walked() {
    let service = TestService::start().await;
    let (_, mut policy) = service.call(Method::GET, "/v1/policy", &service.admin(), None).await;
    for (queue, field) in [
        (json!({ "order": "urgency" }), "queue.order"),
        (json!({ "depth": 0 }), "queue.depth"),
        (json!({ "patience_seconds": 0 }), "queue.patience_seconds"),
        (json!({ "order": "loudest" }), "queue.order"),
    ] {
        policy["queue"] = queue;
        let (status, problem) = service.call(Method::PUT, "/v1/policy", &service.admin(), Some(policy.clone())).await;
        assert_eq!((status, problem["field"].as_str()), (StatusCode::UNPROCESSABLE_ENTITY, Some(field)), "{problem}");
    }
    policy["weight_age"] = 0.into();
    policy["queue"] = json!({ "order": "urgency", "patience_seconds": 2_592_000, "depth": 1 });
    let (status, stored) = service.call(Method::PUT, "/v1/policy", &service.admin(), Some(policy.clone())).await;
    assert_eq!((status, &stored["queue"]), (StatusCode::OK, &policy["queue"]), "{stored}");
}
