//! One tenant against another: every route of the OpenAPI document is tried with another tenant's objects.

mod common;

use common::{Stack, until};
use serde_json::{Value, json};

/// What names acme's objects; none of it may be seen by others.
const SECRETS: [&str; 5] = ["secret-job", "secret-account", "secret-user", "secret-label", "secret-reservation"];

/// A body with which the operation would be accepted on an object of one's own.
fn body(operation: &str) -> Value {
    match operation {
        "jobs_submit" => json!({ "command": ["true"] }),
        "jobs_submit_many" => json!({ "jobs": [{ "command": ["true"] }] }),
        "jobs_signal" | "steps_signal" => json!({ "signal": "SIGUSR1" }),
        "jobs_update" => json!({ "name": "taken" }),
        "steps_open" => json!({ "command": ["true"] }),
        "accounts_put" => json!({ "description": "taken" }),
        "nodes_drain" => json!({ "reason": "taken" }),
        "reservations_create" => json!({ "name": "third", "duration_seconds": 600, "node_count": 1, "tenants": ["other"] }),
        "tenants_create" => json!({ "name": "third" }),
        _ => json!({}),
    }
}

struct Walk<'a> {
    stack: &'a Stack,
    token: String,
}

impl Walk<'_> {
    async fn call(&self, method: &str, path: &str, operation: &str) -> (u16, String) {
        let mut request =
            self.stack.http.request(method.parse().unwrap(), format!("{}{path}", self.stack.servers())).bearer_auth(&self.token);
        if method != "GET" && method != "DELETE" {
            request = request.json(&body(operation)).header("if-match", "*");
        }
        // Streams of events never end by themselves; a few bytes are enough.
        let response = request.timeout(std::time::Duration::from_secs(5)).send().await;
        match response {
            Ok(response) => {
                let status = response.status().as_u16();
                (status, response.text().await.unwrap_or_default())
            }
            Err(error) => panic!("{method} {path}: {error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_route_shows_changes_or_betrays_another_tenants_objects() {
    let mut stack = Stack::start(1, 1).await;
    let worker = stack.worker("n1", &["--node-cpus", "2", "--node-memory", "1GiB"]).await;
    stack.workers.push(worker);
    let admin = stack.token("root", "acme", "tenant_admin");
    for (method, path, body) in [
        ("PUT", "/v1/accounts/secret-account", json!({ "description": "of acme" })),
        ("PUT", "/v1/users/secret-user", json!({ "default_account": "secret-account" })),
        ("PUT", "/v1/associations", json!({ "account": "secret-account", "user": "secret-user" })),
    ] {
        let (status, answer) = stack.call(method, path, &admin, Some(body)).await;
        assert!(status < 300, "{path}: {answer}");
    }
    let root = stack.token("root", "acme", "platform_admin");
    let reservation = json!({ "name": "secret-reservation", "start": "2040-01-01T00:00:00Z", "duration_seconds": 600, "node_count": 1, "users": ["acme/secret-user"] });
    let (status, answer) = stack.call("POST", "/v1/reservations", &root, Some(reservation)).await;
    assert_eq!(status, 201, "{answer}");
    let owner = stack.token("secret-user", "acme", "user");
    let job = json!({
        "name": "secret-job", "account": "secret-account", "command": ["sh", "-c", "echo secret-job; sleep 60"],
        "labels": { "secret-label": "x" }, "resources": { "memory_per_node_bytes": 32 << 20 },
    });
    let (status, answer) = stack.call("POST", "/v1/jobs", &owner, Some(job)).await;
    assert_eq!(status, 201, "{answer}");
    let job = answer["job_id"].as_u64().unwrap();
    stack.until_state(&owner, job, "running").await;
    until("it has written", async || stack.output(&owner, job).await.contains("secret-job")).await;
    let before = stack.job(&owner, job).await;

    let document: Value =
        serde_json::from_str(&stack.http.get(format!("{}/openapi.json", stack.servers())).send().await.unwrap().text().await.unwrap())
            .unwrap();
    let walk = Walk { stack: &stack, token: stack.token("eve", "other", "tenant_admin") };
    let mut walked = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let Some(id) = operation["operationId"].as_str() else { continue };
            let method = method.to_ascii_uppercase();
            let real = path
                .replace("{job_id}", &job.to_string())
                .replace("{step}", "0")
                .replace("{account}", "secret-account")
                .replace("{user}", "secret-user")
                .replace("{tenant}", "acme")
                .replace("{node}", "n1")
                .replace("{partition}", "main")
                .replace("{qos}", "normal")
                .replace("{license}", "matlab")
                .replace("{simulation_id}", "1")
                .replace("{reservation}", "secret-reservation")
                .replace("{id}", "0198f7a0-0000-7000-8000-000000000000");
            assert!(!real.contains('{'), "the walk does not know how to fill in {path}");
            walked += 1;
            let (status, text) = walk.call(&method, &real, id).await;
            assert!(status < 500, "{method} {real}: {status} {text}");
            for secret in SECRETS {
                // What the request itself named may come back in the error, and an account that the walk made is eve's tenant's own.
                let is_own = secret == "secret-account" && path == "/v1/shares" && !text.contains("acme");
                assert!(real.contains(secret) || is_own || !text.contains(secret), "{method} {real} shows {secret}: {text}");
            }
            if path.contains("{job_id}") {
                assert!(matches!(status, 401 | 403 | 404), "{method} {real} gave {status}: {text}");
                // It must look just as a job that was never there.
                let absent = path.replace("{job_id}", "987654").replace("{step}", "0");
                let (absent_status, absent_text) = walk.call(&method, &absent, id).await;
                let neutral = |text: &str, job: &str| {
                    let mut value: Value = serde_json::from_str(text).unwrap_or(Value::Null);
                    value.as_object_mut().map(|o| o.remove("request_id"));
                    value.to_string().replace(&format!("job {job}"), "job JOB")
                };
                assert_eq!(status, absent_status, "{method} {real}");
                assert_eq!(neutral(&text, &job.to_string()), neutral(&absent_text, "987654"), "{method} {real}");
            }
            if path.contains("{reservation}") {
                assert!(matches!(status, 403 | 404), "{method} {real} gave {status}: {text}");
            }
            if path.contains("{tenant}") {
                assert!(matches!(status, 403 | 404), "{method} {real} gave {status}: {text}");
            }
            // Naming the tenant does not help.
            let names_tenant =
                operation["parameters"].as_array().is_some_and(|p| p.iter().any(|p| p["name"] == "tenant" && p["in"] == "query"));
            if names_tenant {
                let (status, named) = walk.call(&method, &format!("{real}?tenant=acme"), id).await;
                // Of what belongs to no tenant one sees as much as without the name.
                let is_shared = status == 200
                    && ["nodes_list", "partitions_list", "qos_list", "reservations_list"].contains(&id)
                    && !named.contains(&format!("\"jobs\":[{job}"));
                assert!(is_shared || (400..500).contains(&status), "{method} {real}?tenant=acme gave {status}: {named}");
            }
        }
    }
    assert!(walked > 50, "only {walked} operations were found");
    // An account or user of that name was made for the other tenant at most: acme's are as they were.
    let (_, account) = stack.call("GET", "/v1/accounts/secret-account", &admin, None).await;
    assert_eq!(account["description"], "of acme");
    let after = stack.job(&owner, job).await;
    assert_eq!((&before["state"], &before["version"], &before["name"]), (&after["state"], &after["version"], &after["name"]));
    let lists = walk.call("GET", "/v1/jobs?name=secret*&state=running", "jobs_list").await;
    assert!(lists.1.contains("\"items\":[]"), "{}", lists.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_job_is_made_of_and_wrote_is_its_owners_to_read() {
    let mut stack = Stack::start(1, 1).await;
    let worker = stack.worker("n1", &["--node-cpus", "2", "--node-memory", "1GiB"]).await;
    stack.workers.push(worker);
    let owner = stack.user();
    let spec = json!({ "script": "#!/bin/sh\necho $KEY\n", "environment": { "KEY": "s3cret" }, "resources": { "memory_per_node_bytes": 32 << 20 } });
    let (status, answer) = stack.call("POST", "/v1/jobs", &owner, Some(spec)).await;
    assert_eq!(status, 201, "{answer}");
    let job = answer["job_id"].as_u64().unwrap();
    stack.until_state(&owner, job, "completed").await;
    until("its output is there", async || stack.output(&owner, job).await.contains("s3cret")).await;
    let admin = stack.token("boss", "acme", "tenant_admin");
    for token in [&owner, &admin] {
        let shown = stack.job(token, job).await;
        assert_eq!(shown["spec"]["environment"]["KEY"], "s3cret");
        assert!(stack.output(token, job).await.contains("s3cret"));
    }
    let colleague = stack.token("bob", "acme", "user");
    let shown = stack.job(&colleague, job).await;
    assert_eq!((shown["state"].as_str(), &shown["hidden"]), (Some("completed"), &json!(["environment", "script"])));
    for path in ["", "/logs", "/events", "/attempts", "/steps", "/explain"] {
        let (status, answer) = stack.call("GET", &format!("/v1/jobs/{job}{path}"), &colleague, None).await;
        assert!(status == if path == "/logs" { 403 } else { 200 }, "{path}: {answer}");
        assert!(!answer.to_string().contains("s3cret") && !answer.to_string().contains("$KEY"), "{path}: {answer}");
    }
}
