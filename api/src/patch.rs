//! JSON merge patches (RFC 7396): a field that is absent stays, `null` takes it back to its default.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::extract::parse_json;
use crate::problem::Answer;

/// `current` with the patch in it, checked as a whole body would be.
pub fn merge<T: Serialize + DeserializeOwned>(current: &T, patch: serde_json::Map<String, Value>) -> Answer<T> {
    let mut merged = serde_json::to_value(current).unwrap_or_default();
    apply(&mut merged, Value::Object(patch));
    parse_json(&serde_json::to_vec(&merged).unwrap_or_default())
}

fn apply(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(serde_json::Map::new());
    }
    let Value::Object(fields) = target else { unreachable!("it was made an object") };
    for (field, value) in patch {
        if value.is_null() {
            fields.remove(&field);
        } else {
            apply(fields.entry(field).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_examples_of_the_standard() {
        for (target, patch, expected) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ] {
            let mut merged = target;
            apply(&mut merged, patch);
            assert_eq!(merged, expected);
        }
    }
}
