use super::*;

fn spec(json: &str) -> ReservationSpec {
    serde_json::from_str(json).unwrap()
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[test]
fn each_fault_names_its_field() {
    let now = at("2026-12-02T12:00:00Z");
    for (fields, code, field) in [
        (r#""nodes": "n1""#, "people_required", "users"),
        (r#""users": ["acme/ann"]"#, "nodes_required", "nodes"),
        (r#""users": ["acme/ann"], "nodes": "n1", "node_count": 2"#, "contradiction", "node_count"),
        (r#""users": ["acme/ann"], "nodes": "n[1-""#, "invalid_nodelist", "nodes"),
        (r#""users": ["acme/ann", "-acme/bob"], "nodes": "n1""#, "mixed_list", "users"),
        (r#""tenants": ["acme/ann"], "nodes": "n1""#, "invalid_name", "tenants"),
        (r#""tenants": ["acme"], "nodes": "n1", "flags": ["daily", "weekly"]"#, "invalid_flags", "flags"),
        (r#""tenants": ["acme"], "nodes": "n1", "flags": ["replace"]"#, "invalid_flags", "flags"),
        (r#""tenants": ["acme"], "flags": ["part_nodes"]"#, "invalid_flags", "flags"),
        (r#""tenants": ["acme"], "node_count": 1, "float_seconds": 600, "flags": ["magnetic"]"#, "invalid_flags", "flags"),
        (r#""tenants": ["acme"], "node_count": 1, "time_zone": "Mars/Base""#, "invalid_time_zone", "time_zone"),
        (r#""tenants": ["acme"], "tres": {"billing": 3}"#, "invalid_tres", "tres"),
        (r#""tenants": ["acme"], "tres": {"cpu": 9223372036854775807}"#, "invalid_tres", "tres"),
        (r#""tenants": ["acme"], "features": "a*2,b""#, "invalid_features", "features"),
        (r#""tenants": ["acme"], "node_count": 1, "end": "2026-12-03T00:00:00Z", "duration_seconds": 60"#, "invalid_time", "end"),
    ] {
        let fault = spec(&format!(r#"{{"name": "r", {fields}}}"#)).check().unwrap_err();
        assert_eq!((fault.code.as_str(), fault.field.as_str()), (code, field), "{fields}");
    }
    let past = spec(r#"{"name": "r", "nodes": "n1", "tenants": ["acme"], "start": "2026-12-01T00:00:00Z", "duration_seconds": 60}"#);
    assert_eq!(past.first_window(now).unwrap_err().code, "reservation_in_past");
    assert_eq!(past.clone().begin(now).unwrap_err().code, "reservation_in_past");
    for fine in [
        r#""nodes": "ALL", "flags": ["maint"]"#,
        r#""features": "h100*2,fat*1", "tenants": ["acme"]"#,
        r#""flags": ["part_nodes"], "partition": "gpu", "tenants": ["-acme"]"#,
        r#""tres": {"gres/gpu": 4}, "tenants": ["acme"], "flags": ["flex", "magnetic"]"#,
    ] {
        spec(&format!(r#"{{"name": "r", {fine}}}"#)).check().unwrap();
    }
}

#[test]
fn it_lasts_as_long_as_was_asked_for() {
    let now = at("2026-12-02T12:00:00.5Z");
    let window = |fields: &str| {
        let mut spec = spec(&format!(r#"{{"name": "r", "nodes": "n1", "tenants": ["acme"], {fields}}}"#));
        spec.begin(now).and_then(|()| spec.first_window(now)).map(|window| (window.start, window.end)).map_err(|fault| fault.field)
    };
    let (second_ago, hour_on) = (at("2026-12-02T12:00:00Z"), at("2026-12-02T13:00:00.5Z"));
    assert!(second_ago < now);
    for (fields, expected) in [
        (r#""duration_seconds": 3600"#, Ok((now, hour_on))),
        (r#""start": "2026-12-02T12:00:00Z", "duration_seconds": 3600"#, Ok((now, hour_on))),
        (r#""start": "2026-12-02T12:00:00Z", "end": "2026-12-02T13:00:00Z""#, Ok((now, at("2026-12-02T13:00:00Z")))),
        (r#""start": "2026-12-02T08:00:00Z", "duration_seconds": 86400, "flags": ["daily"]"#, {
            Ok((at("2026-12-02T08:00:00Z"), at("2026-12-03T08:00:00Z")))
        }),
        (r#""start": "2026-12-02T11:00:00Z", "duration_seconds": 7200"#, Err("start")),
        (r#""start": "2026-12-02T14:00:00Z", "end": "2026-12-02T13:00:00Z""#, Err("end")),
        (r#""end": "2036-12-31T00:00:00Z""#, Err("end")),
        (r#""duration_seconds": 86401, "flags": ["daily"]"#, Err("duration_seconds")),
        (r#""duration_seconds": 3601, "flags": ["hourly"]"#, Err("duration_seconds")),
        (r#""end": "2026-12-10T12:00:00Z", "flags": ["weekly"]"#, Err("end")),
        (r#""flags": ["weekend"]"#, Err("duration_seconds")),
    ] {
        assert_eq!(window(fields), expected.map_err(str::to_owned), "{fields}");
    }
}

#[test]
fn a_name_without_a_tenant_is_of_the_only_one() {
    let mut one = spec(r#"{"name": "r", "nodes": "n1", "tenants": ["acme"], "users": ["-ann"]}"#);
    one.qualify().unwrap();
    assert_eq!(one.users, BTreeSet::from(["-acme/ann".to_owned()]));
    let mut two = spec(r#"{"name": "r", "nodes": "n1", "tenants": ["acme", "beta"], "users": ["ann"]}"#);
    assert_eq!(two.qualify().unwrap_err().code, "tenant_required");
}

#[test]
fn all_lists_must_match_and_a_minus_excludes() {
    let access = |json: &str| spec(&format!(r#"{{"name": "r", {json}}}"#)).access();
    for (lists, admitted) in [
        (r#""tenants": ["acme"]"#, vec!["acme/ml/ann", "acme/ml/bob", "acme/bio/bob"]),
        (r#""users": ["acme/ann"]"#, vec!["acme/ml/ann"]),
        (r#""accounts": ["acme/ml"], "users": ["-acme/bob"]"#, vec!["acme/ml/ann"]),
        (r#""tenants": ["-acme"]"#, vec!["beta/ml/ann"]),
        (r#""accounts": ["-acme/ml"]"#, vec!["acme/bio/bob", "beta/ml/ann"]),
        (r#""comment": "nobody""#, vec![]),
        (r#""tenants": ["acme"], "float_seconds": 600"#, vec![]),
    ] {
        let access = access(lists);
        let all = ["acme/ml/ann", "acme/ml/bob", "acme/bio/bob", "beta/ml/ann"];
        let found: Vec<&str> = all
            .into_iter()
            .filter(|who| {
                let who: Vec<Name> = who.split('/').map(name).collect();
                access.admits(&who[0], &who[1], &who[2])
            })
            .collect();
        assert_eq!(found, admitted, "{lists}");
    }
    assert!(access(r#""users": ["acme/ann"]"#).concerns("acme") && !access(r#""users": ["acme/ann"]"#).concerns("beta"));
    assert!(access(r#""tenants": ["-acme"]"#).concerns("beta") && !access(r#""tenants": ["-acme"]"#).concerns("acme"));
}

#[test]
fn it_comes_again_at_the_same_time_of_day() {
    let hour = |start: &str| Window { start: at(start), end: at(start) + jiff::SignedDuration::from_hours(1) };
    use ReservationFlag::{Daily, Hourly, Maintenance, Weekday, Weekend, Weekly};
    // 2026-12-04 is a Friday. In Berlin clocks go forward on 2026-03-29 at 01:00 UTC.
    for (start, repeat, zone, next) in [
        ("2026-12-04T10:00:00Z", Hourly, None, "2026-12-04T11:00:00Z"),
        ("2026-12-04T10:00:00Z", Daily, None, "2026-12-05T10:00:00Z"),
        ("2026-12-04T10:00:00Z", Weekday, None, "2026-12-07T10:00:00Z"),
        ("2026-12-03T10:00:00Z", Weekday, None, "2026-12-04T10:00:00Z"),
        ("2026-12-04T10:00:00Z", Weekend, None, "2026-12-05T10:00:00Z"),
        ("2026-12-05T10:00:00Z", Weekend, None, "2026-12-06T10:00:00Z"),
        ("2026-12-06T10:00:00Z", Weekend, None, "2026-12-12T10:00:00Z"),
        ("2026-12-04T10:00:00Z", Weekly, None, "2026-12-11T10:00:00Z"),
        ("2026-03-28T10:00:00Z", Daily, Some("Europe/Berlin"), "2026-03-29T09:00:00Z"),
        ("2026-03-28T10:00:00Z", Daily, None, "2026-03-29T10:00:00Z"),
        // 23:30 UTC on Thursday is Friday in Berlin.
        ("2026-12-03T23:30:00Z", Weekday, Some("Europe/Berlin"), "2026-12-06T23:30:00Z"),
    ] {
        assert_eq!(next_window(hour(start), Some(repeat), zone), Some(hour(next)), "{start} {repeat} {zone:?}");
    }
    assert_eq!(next_window(hour("2026-12-04T10:00:00Z"), None, None), None);
    assert_eq!(next_window(hour("2026-12-04T10:00:00Z"), Some(Maintenance), None), None);
    let first = hour("2026-12-04T10:00:00Z");
    assert_eq!(windows(first, Some(Hourly), None).len(), MOST_WINDOWS);
    assert_eq!(windows(first, Some(Daily), None).len(), 15);
    assert_eq!(windows(first, Some(Weekly), None).len(), 3);
    assert_eq!(windows(first, None, None), [first]);
}

#[test]
fn features_have_counts_or_none() {
    let counts = |text: &str| parse_features(text).map(|all| all.into_iter().map(|f| (f.any_of.len(), f.count)).collect::<Vec<_>>());
    assert_eq!(counts("h100&ib").unwrap(), [(1, None)]);
    assert_eq!(counts("h100*2,(fat|thin)*1").unwrap(), [(1, Some(2)), (2, Some(1))]);
    assert!(counts("h100*0").is_err() && counts("a,b").is_err());
}
