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

/// What a change answers: status, code of the problem, field.
fn problem((status, body): &(StatusCode, Value)) -> (u16, String, String) {
    let text = |field: &str| body[field].as_str().unwrap_or_default().to_owned();
    (status.as_u16(), text("code"), text("field"))
}

#[tokio::test]
async fn of_many_submissions_at_once_as_many_pass_as_the_limit_allows() {
    let service = TestService::start().await;
    let admin = service.admin();
    let path = "/v1/accounts/default?tenant=acme";
    let limit = json!({ "terms": { "limits": { "grp_submit_jobs": 7 } } });
    let (status, account) = service.call(Method::PATCH, path, &admin, Some(limit)).await;
    assert_eq!((status, &account["terms"]["limits"]["grp_submit_jobs"]), (StatusCode::OK, &json!(7)), "{account}");
    let ann = service.user("ann", "acme");
    let all = futures::future::join_all((0..20).map(|_| service.call(Method::POST, "/v1/jobs", &ann, Some(echo())))).await;
    assert_eq!(all.iter().filter(|(status, _)| *status == StatusCode::CREATED).count(), 7);
    let refused = all.iter().find(|(status, _)| *status != StatusCode::CREATED).unwrap();
    assert_eq!(problem(refused), (422, "assoc_group_submit_jobs".to_owned(), "account".to_owned()));
    assert_eq!(refused.1["detail"], "the limit grp_submit_jobs=7 of account/acme/default holds: 7 jobs wait or run, 1 more are submitted");
    // One ends, and an array of two is one too many, with or without an idempotency key.
    let job = all.iter().find_map(|(_, body)| body["job_id"].as_u64()).unwrap();
    service.call(Method::POST, &format!("/v1/jobs/{job}:cancel"), &ann, Some(json!({}))).await;
    let array = json!({ "script": "#!/bin/sh\ntrue\n", "array": "0-1" });
    assert_eq!(problem(&service.call(Method::POST, "/v1/jobs", &ann, Some(array.clone())).await).0, 422);
    let keyed = service.client.post(format!("{}/v1/jobs", service.url)).bearer_auth(&ann).header("idempotency-key", "k").json(&array);
    assert_eq!(keyed.send().await.unwrap().status(), 422);
    assert_eq!(service.call(Method::POST, "/v1/jobs", &ann, Some(echo())).await.0, StatusCode::CREATED);
}

#[tokio::test]
async fn a_limit_that_can_never_be_met_refuses_the_job_unless_it_may_wait() {
    let service = TestService::start().await;
    let (admin, ann) = (service.admin(), service.user("ann", "acme"));
    let limit = json!({ "limits": { "max_tres_per_job": { "cpu": 4 }, "max_wall_seconds": 3600 } });
    assert_eq!(service.call(Method::PATCH, "/v1/qos/normal", &admin, Some(limit)).await.0, StatusCode::OK);
    let wide = json!({ "command": ["true"], "resources": { "tasks": 5 } });
    let refused = service.call(Method::POST, "/v1/jobs", &ann, Some(wide.clone())).await;
    assert_eq!(problem(&refused), (422, "qos_max_tres_per_job".to_owned(), "resources.cpus_per_task".to_owned()));
    assert_eq!(refused.1["detail"], "the limit max_tres_per_job cpu=4 of qos/normal can never be met: the job asks for 5 cpu");
    let long = json!({ "command": ["true"], "time_limit_seconds": 3601 });
    let refused = service.call(Method::POST, "/v1/jobs", &ann, Some(long)).await;
    assert_eq!(problem(&refused), (422, "qos_max_wall_seconds".to_owned(), "time_limit_seconds".to_owned()));
    let (_, short) = service.call(Method::POST, "/v1/jobs", &ann, Some(echo())).await;
    let (_, job) = service.call(Method::GET, &format!("/v1/jobs/{}", short["job_id"]), &ann, None).await;
    assert_eq!(job["time_limit_seconds"], 3600, "the limit is the default of a job that names none");
    let wait = json!({ "impossible_limit": "wait" });
    assert_eq!(service.call(Method::PATCH, "/v1/policy", &admin, Some(wait)).await.0, StatusCode::OK);
    assert_eq!(service.call(Method::POST, "/v1/jobs", &ann, Some(wide.clone())).await.0, StatusCode::CREATED);
    assert_eq!(service.call(Method::PATCH, "/v1/qos/normal", &admin, Some(json!({ "deny_on_limit": true }))).await.0, StatusCode::OK);
    assert_eq!(service.call(Method::POST, "/v1/jobs", &ann, Some(wide)).await.0, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn terms_are_patched_with_etags_and_checked() {
    let service = TestService::start().await;
    let admin = service.admin();
    let lead = mint(&service.key, &service.request("lea", Some("acme"), "tenant_admin")).unwrap();
    let put = json!({ "terms": { "fairshare": 20, "limits": { "grp_tres": { "gres/gpu": 8 } } } });
    let (status, _) = service.call(Method::PUT, "/v1/accounts/ml", &lead, Some(put)).await;
    assert_eq!(status, StatusCode::OK);
    let patch = json!({ "terms": { "fairshare": "parent", "limits": { "grp_tres": { "cpu": 100, "gres/gpu": null } } } });
    let (_, account) = service.call(Method::PATCH, "/v1/accounts/ml", &lead, Some(patch.clone())).await;
    assert_eq!(account["terms"], json!({ "fairshare": "parent", "limits": { "grp_tres": { "cpu": 100 } } }));
    let stale = service.client.patch(format!("{}/v1/accounts/ml", service.url)).bearer_auth(&lead).header("if-match", "\"1\"").json(&patch);
    assert_eq!(stale.send().await.unwrap().status(), 412);
    for (path, body, expected) in [
        ("/v1/accounts/ml", json!({ "terms": { "priority": 5 } }), (403, "forbidden", "terms.priority")),
        (
            "/v1/accounts/ml",
            json!({ "terms": { "limits": { "max_tres_per_node": { "license/x": 1 } } } }),
            (422, "unsupported_tres", "terms.limits.max_tres_per_node"),
        ),
        ("/v1/accounts/ml", json!({ "terms": { "grp_jobs": 1 } }), (422, "invalid_field", "terms.grp_jobs")),
        ("/v1/accounts/none", json!({}), (404, "not_found", "")),
        ("/v1/policy", json!({ "weight_age": 1 }), (403, "forbidden", "")),
    ] {
        let answer = service.call(Method::PATCH, path, &lead, Some(body)).await;
        let (status, code, field) = expected;
        assert_eq!(problem(&answer), (status, code.to_owned(), field.to_owned()), "{path}: {}", answer.1);
    }
    let never = json!({ "half_life_seconds": 0 });
    assert_eq!(problem(&service.call(Method::PATCH, "/v1/policy", &admin, Some(never)).await).1, "usage_never_fades");
    let (_, policy) =
        service.call(Method::PATCH, "/v1/policy", &admin, Some(json!({ "weight_age": 7, "weight_tres": { "gres/gpu": 3000 } }))).await;
    assert_eq!((&policy["weight_age"], &policy["weight_qos"]), (&json!(7), &json!(10_000)));
    let (status, tenant) = service.call(Method::PATCH, "/v1/tenants/acme", &admin, Some(json!({ "terms": { "fairshare": 40 } }))).await;
    assert_eq!((status, &tenant["terms"]["fairshare"]), (StatusCode::OK, &json!(40)));
}

#[tokio::test]
async fn age_counts_from_eligibility() {
    let service = TestService::start().await;
    let ann = service.user("ann", "acme");
    let accrues = async |job: &Value| {
        let (events, _) = service.db.snapshot().await.unwrap();
        let found = events.into_iter().find_map(|event| match event {
            berth_model::event::Event::Job(found) if found.id.0 == job["job_id"].as_u64().unwrap() => Some(found),
            _ => None,
        });
        found.unwrap().accrues_since
    };
    let (_, plain) = service.call(Method::POST, "/v1/jobs", &ann, Some(echo())).await;
    assert!(accrues(&plain).await.is_some());
    let held = json!({ "command": ["true"], "hold": true });
    let (_, held) = service.call(Method::POST, "/v1/jobs", &ann, Some(held)).await;
    assert!(accrues(&held).await.is_none());
    service.call(Method::POST, &format!("/v1/jobs/{}:release", held["job_id"]), &ann, None).await;
    assert!(accrues(&held).await.is_some());
    let after = json!({ "command": ["true"], "dependencies": [format!("afterany:{}", plain["job_id"])] });
    let (_, after) = service.call(Method::POST, "/v1/jobs", &ann, Some(after)).await;
    assert!(accrues(&after).await.is_none());
    service.call(Method::POST, &format!("/v1/jobs/{}:cancel", plain["job_id"]), &ann, Some(json!({}))).await;
    assert!(accrues(&after).await.is_some());
    let later = json!({ "command": ["true"], "begin": "2099-01-01T00:00:00Z" });
    let (_, later) = service.call(Method::POST, "/v1/jobs", &ann, Some(later)).await;
    assert_eq!(accrues(&later).await.unwrap().to_string(), "2099-01-01T00:00:00Z");
}
