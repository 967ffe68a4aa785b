//! The shim alone, for tests.

fn main() -> std::io::Result<()> {
    let dir = std::env::args_os().nth(1).unwrap_or_default();
    berth_runtime::shim::run(std::path::Path::new(&dir))
}
