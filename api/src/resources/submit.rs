//! Submission: one job, many, or a script to be read.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use berth_model::Fault;
use berth_model::job::JobSpec;
use berth_model::script::parse_script;
use berth_store::jobs::submit::{NewJob, Once, Submitted};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::App;
use crate::admission::admit;
use crate::auth::Caller;
use crate::extract::{self, form_pairs};
use crate::problem::{Answer, Problem};

/// What a submission is answered.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SubmittedJob {
    pub job_id: u64,
    #[schema(value_type = berth_model::state::JobState)]
    pub state: String,
    pub submit_time: Timestamp,
    /// Of a heterogeneous job: the ids of its components, its own first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<u64>,
    /// What was understood but not done: unsupported directives, for example.
    #[serde(default)]
    pub warnings: Vec<Fault>,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SubmittedJobs {
    pub items: Vec<SubmittedJob>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SubmitMany {
    /// Up to 10,000 jobs; all are taken or none.
    #[schema(min_items = 1, max_items = 10000)]
    pub jobs: Vec<JobSpec>,
}

/// A script read into a job, nothing submitted.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ParsedJob {
    pub spec: JobSpec,
    pub warnings: Vec<Fault>,
}

/// Most jobs in one call.
const MAX_JOBS: usize = 10_000;

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(submit)).routes(routes!(submit_many)).routes(routes!(parse))
}

/// The tenant and, for scripts, the sbatch options that win over the script's own: `?time=10&partition=h100`.
pub(super) fn split_query(request: &Request) -> (Option<String>, Vec<(String, Option<String>)>) {
    let mut tenant = None;
    let mut options = Vec::new();
    for (key, value) in form_pairs(request.uri().query().unwrap_or("")) {
        if key == "tenant" {
            tenant = Some(value);
        } else {
            options.push((key, Some(value).filter(|v| !v.is_empty())));
        }
    }
    (tenant, options)
}

/// Reads a job from JSON or a batch script.
pub(super) fn read_job(headers: &HeaderMap, body: &[u8], options: &[(String, Option<String>)]) -> Answer<(JobSpec, Vec<Fault>)> {
    match extract::content_type(headers).as_deref() {
        Some("text/x-shellscript" | "application/x-sh" | "text/plain") => {
            let text = std::str::from_utf8(body)
                .map_err(|_| Fault::new("invalid_script", "script", "the script is not UTF-8 text", "save the script as UTF-8"))?;
            let parsed = parse_script(text, options, Timestamp::now()).map_err(Problem::faults)?;
            Ok((parsed.spec, parsed.warnings))
        }
        _ if extract::is_json(headers) => {
            if let Some((name, _)) = options.first() {
                return Err(Fault::new(
                    "invalid_parameter",
                    name.as_str(),
                    format!("{name} is not a parameter of this request"),
                    "options in the query go with a script; in JSON they are fields",
                )
                .into());
            }
            Ok((extract::parse_object(body)?, Vec::new()))
        }
        _ => Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", "the body is neither JSON nor a shell script")
            .field("Content-Type")
            .help("send application/json, or text/x-shellscript for a batch script")),
    }
}

/// Submit a job, as JSON or as a batch script (`Content-Type: text/x-shellscript`). When this answers, the job is on disk.
///
/// With a script, each further query parameter is an sbatch option that wins over the script's own: `?time=10&partition=h100`.
#[utoipa::path(post, path = "/v1/jobs", operation_id = "jobs_submit", tag = "jobs",
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repeat of the request safe for 24 hours"),
        ("tenant" = Option<String>, Query, description = "The tenant meant; only platform admins name another than their own")),
    request_body(content((JobSpec = "application/json"), (String = "text/x-shellscript"))),
    responses((status = 201, body = SubmittedJob, headers(("Location" = String))), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn submit(State(app): State<App>, caller: Caller, request: Request) -> Answer<Response> {
    let outcome = submit_one(&app, &caller, request).await;
    app.metrics.submitted(if outcome.is_ok() { "accepted" } else { "refused" }, 1);
    outcome
}

async fn submit_one(app: &App, caller: &Caller, request: Request) -> Answer<Response> {
    caller.require_scope("jobs:write")?;
    require_submitter(caller)?;
    let (tenant, options) = split_query(&request);
    let tenant = caller.tenant_to_use(tenant.as_deref())?;
    let headers = request.headers().clone();
    let body = extract::read(request, app).await?;
    let once = idempotency(&headers, caller, &tenant, &body)?;
    let (spec, warnings) = read_job(&headers, &body, &options)?;
    let jobs = admit(app, caller, &tenant, spec).await?;
    let answer = match once {
        None => {
            let submitted = app.submissions.submit(jobs).await?;
            serde_json::to_value(view(&submitted, warnings)).unwrap_or_default()
        }
        Some(once) => {
            app.db.submit_jobs_once(&once, &jobs, |submitted| serde_json::to_value(view(submitted, warnings)).unwrap_or_default()).await?
        }
    };
    let location = format!("/v1/jobs/{}", answer["job_id"]);
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(answer)).into_response())
}

pub(super) fn require_submitter(caller: &Caller) -> Answer<()> {
    use berth_model::state::Role;
    if [Role::User, Role::AccountManager, Role::TenantAdmin, Role::PlatformAdmin].into_iter().any(|r| caller.has(r)) {
        Ok(())
    } else {
        Err(Problem::forbidden("submitting needs the role user"))
    }
}

/// One job, or the components of one.
fn view(submitted: &[Submitted], warnings: Vec<Fault>) -> SubmittedJob {
    let components = if submitted.len() > 1 { submitted.iter().map(|row| row.job_id.0).collect() } else { Vec::new() };
    let first = submitted[0];
    SubmittedJob { job_id: first.job_id.0, state: "pending".to_owned(), submit_time: first.submit_time, components, warnings }
}

fn idempotency(headers: &HeaderMap, caller: &Caller, tenant: &str, body: &[u8]) -> Answer<Option<Once>> {
    let Some(key) = headers.get("idempotency-key") else { return Ok(None) };
    let key = key.to_str().ok().filter(|k| (1..=255).contains(&k.len())).ok_or_else(|| {
        Fault::new(
            "invalid_idempotency_key",
            "Idempotency-Key",
            "the key is empty, too long or not ASCII",
            "use 1 to 255 characters, for example a UUID",
        )
    })?;
    Ok(Some(Once {
        tenant: tenant.to_owned(),
        subject: caller.subject.to_string(),
        key: key.to_owned(),
        request_hash: Sha256::digest(body).to_vec(),
    }))
}

/// Submit many jobs in one call: JSON `{"jobs": […]}`, or one spec a line (`application/x-ndjson`). All are taken or none.
#[utoipa::path(post, path = "/v1/jobs/~submitMany", operation_id = "jobs_submit_many", tag = "jobs",
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repeat of the request safe for 24 hours"),
        ("tenant" = Option<String>, Query, description = "The tenant meant; only platform admins name another than their own")),
    request_body(content((SubmitMany = "application/json"), (String = "application/x-ndjson"))),
    responses((status = 201, body = SubmittedJobs), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn submit_many(State(app): State<App>, caller: Caller, request: Request) -> Answer<(StatusCode, Json<serde_json::Value>)> {
    caller.require_scope("jobs:write")?;
    require_submitter(&caller)?;
    let (tenant, _) = split_query(&request);
    let tenant = caller.tenant_to_use(tenant.as_deref())?;
    let headers = request.headers().clone();
    let body = extract::read(request, &app).await?;
    let once = idempotency(&headers, &caller, &tenant, &body)?;
    let specs = read_many(&headers, &body)?;
    let mut jobs: Vec<NewJob> = Vec::with_capacity(specs.len());
    // Components that each job has.
    let mut sizes: Vec<usize> = Vec::with_capacity(specs.len());
    for (index, spec) in specs.into_iter().enumerate() {
        let admitted = admit(&app, &caller, &tenant, spec).await.map_err(|problem| within(problem, index))?;
        sizes.push(admitted.len());
        jobs.extend(admitted);
    }
    let answer = |submitted: &[Submitted]| {
        let mut rest = submitted;
        let own = |size: &usize| {
            let (own, others) = rest.split_at(*size);
            rest = others;
            view(own, Vec::new())
        };
        let items = sizes.iter().map(own).collect();
        serde_json::to_value(SubmittedJobs { items }).unwrap_or_default()
    };
    let count = jobs.len();
    let value = match once {
        None => answer(&app.submissions.submit(jobs).await?),
        Some(once) => app.db.submit_jobs_once(&once, &jobs, answer).await?,
    };
    app.metrics.submitted("accepted", count);
    Ok((StatusCode::CREATED, Json(value)))
}

fn read_many(headers: &HeaderMap, body: &[u8]) -> Answer<Vec<JobSpec>> {
    let specs = match extract::content_type(headers).as_deref() {
        Some("application/x-ndjson" | "application/jsonl") => body
            .split(|b| *b == b'\n')
            .filter(|line| !line.iter().all(u8::is_ascii_whitespace))
            .enumerate()
            .map(|(index, line)| extract::parse_object(line).map_err(|problem| within(problem, index)))
            .collect::<Answer<Vec<JobSpec>>>()?,
        _ if extract::is_json(headers) => extract::parse_json::<SubmitMany>(body)?.jobs,
        _ => {
            return Err(Problem::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "unsupported_media_type",
                "the body is neither JSON nor lines of JSON",
            )
            .field("Content-Type")
            .help("send application/json or application/x-ndjson"));
        }
    };
    match specs.len() {
        1..=MAX_JOBS => Ok(specs),
        0 => Err(Fault::new("no_jobs", "jobs", "there is no job in the request", "send 1 to 10000 jobs").into()),
        count => Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", format!("{count} jobs in one call"))
            .field("jobs")
            .help("send at most 10000 jobs a call")),
    }
}

/// A fault of the job at `index`.
fn within(problem: Problem, index: usize) -> Problem {
    problem.within(&format!("jobs[{index}]"))
}

/// Read a batch script into the job it would be, without submitting it.
#[utoipa::path(post, path = "/v1/jobs/~parseScript", operation_id = "jobs_parse_script", tag = "jobs",
    request_body(content((String = "text/x-shellscript"))),
    responses((status = 200, body = ParsedJob), (status = "default", body = Problem, content_type = "application/problem+json")))]
async fn parse(State(app): State<App>, caller: Caller, request: Request) -> Answer<Json<ParsedJob>> {
    caller.require_scope("jobs:read")?;
    let (_, options) = split_query(&request);
    let headers = request.headers().clone();
    let body = extract::read(request, &app).await?;
    if extract::is_json(&headers) {
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", "the body is JSON")
            .field("Content-Type")
            .help("send the script as text/x-shellscript"));
    }
    let (spec, warnings) = read_job(&headers, &body, &options)?;
    Ok(Json(ParsedJob { spec, warnings }))
}
